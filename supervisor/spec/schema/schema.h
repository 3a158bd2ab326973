#pragma once

// Schema: what may stand in files of one kind: one row for every key, with its type, default, what of it this build
// does, and a line of documentation; what keys are called elsewhere; examples. Unknown keys, types, suggestions, the
// reference and `explain` all come from it. spec_schema() is that of specs.
//
// Thread: values that do not change after they were made.

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monarch {

// What to do with keys whose values are read and checked already, and which no launcher honours yet. Tests alone take
// them.
enum class UnbuiltKeys : std::uint8_t { kRefuse, kTake };

enum class ValueType : std::uint8_t {
  kMap,       // of the keys whose rows lie below
  kNamedMap,  // of keys that the user chooses; the row below is `*`
  kList,      // of values; the row below is `[]`
  kInteger,
  kNumber,
  kBool,
  kDuration,
  kSize,
  kText,
  kName,   // of a job, mesh or dimension
  kWord,   // one of `words`
  kPorts,  // 20000-20999
  kHosts,  // node[01-20], or a list of names and of {name, address, user, port, host_key}
  kAny,    // whatever the plugin takes
};

enum class NameRule : std::uint8_t { kName, kVariable };  // of the keys of a kNamedMap

struct KeyRow {
  std::string_view path;  // "meshes.*.stop.grace"
  ValueType type = ValueType::kMap;
  std::string_view default_value{};  // as a spec would write it; empty: it has none
  std::string_view words{};          // "none|auto": taken beside what `type` says
  std::string_view meant{};          // "sigkill=kill|reboot=power-loss": words of others, and ours
  std::int64_t least = 0;  // of an integer or number; of a duration in milliseconds; of a text or list its length
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  bool required = false;
  bool or_map = false;         // a map of the rows below does as well
  std::string_view unbuilt{};  // "*": all but the default; "a|b": these words; of a map without default: all of it
  std::string_view built{};    // with unbuilt "*": these are built, too
  NameRule names = NameRule::kName;
  bool bytes = false;  // of a text: it need be no UTF-8, as `!!binary` writes it
  std::string_view doc{};
};

// What the documentation of a key says beyond its row: an example, and where one line does not do, a paragraph. Every
// key with a name has an example.
struct KeyHelp {
  std::string_view path;     // of a row
  std::string_view example;  // its value, on one line, as it would be written
  std::string_view more{};   // a paragraph; may be empty
};

// A key of others, and the one of ours that is meant by it.
struct Synonym {
  std::string_view theirs;
  std::string_view ours;    // a path; its last part is the key
  std::string_view says{};  // where no key is meant: what to do instead
};

// Maps with the keys of another, whose rows they share: each of `owners` has one of the last name of `path`.
struct SharedMap {
  std::string_view path;                 // "supervision"
  std::vector<std::string_view> owners;  // "meshes.*"
};

// Of these keys of a map exactly one is written.
struct OneOf {
  std::string_view path;
  std::string_view keys;  // "at|every"
};

// What messages call one of the maps at `path`: "a mesh".
struct NamedEntries {
  std::string_view path;
  std::string_view one;
};

struct SchemaParts {
  std::string_view called;        // "a spec"
  std::string_view start;         // how such a file is begun, as help
  std::string_view explained_at;  // what stands before its keys in `monarch explain`; may be empty
  std::string_view checked_by;    // the command that checks more than one key at a time
  std::vector<KeyRow> rows;       // in the order of the documentation
  std::vector<KeyHelp> help;
  std::vector<Synonym> synonyms;
  std::vector<SharedMap> shared;
  std::vector<OneOf> one_of;
  std::vector<NamedEntries> entries;
};

class Schema {
 public:
  explicit Schema(SchemaParts parts);
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

  const SchemaParts& parts() const { return parts_; }
  std::span<const KeyRow> rows() const { return parts_.rows; }

  // The row for a path with `*` and `[]` in it, as in rows(); that of a shared map is found below each owner.
  const KeyRow* find_row(std::string_view path) const;
  // The row of `key` below `path`: its own, or the one of `*`.
  const KeyRow* find_child(std::string_view path, std::string_view key) const;
  // The keys that may be written below `path`, in the order of the rows; without `*` and `[]`.
  std::vector<std::string_view> keys_below(std::string_view path) const;
  // nullptr for `*` and `[]`. As find_row(), it finds `meshes.*.supervision.…` at `supervision.…`.
  const KeyHelp* find_help(std::string_view path) const;

 private:
  std::string_view canonical(std::string_view path) const;

  SchemaParts parts_;
  std::map<std::string_view, const KeyRow*> by_path_;
};

const Schema& spec_schema();

// Whether the mark of a key is none, or to be passed over.
bool is_taken(const KeyRow& row, UnbuiltKeys unbuilt);

bool word_in(std::string_view words, std::string_view word);
// The word of ours that is meant by this one of others; empty: none.
std::string word_meant(const KeyRow& row, std::string_view word);
std::vector<std::string> split_words(std::string_view words);

}  // namespace monarch
