#pragma once

// The schema: one row for every key of a spec, with its type, default, what of it this build does, and a line of
// documentation. Unknown keys, types, suggestions, the reference and `explain` all come from these rows.
//
// Thread: constant data.

#include <cstdint>
#include <limits>
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

std::span<const KeyRow> all_rows();

// The row for a path with `*` and `[]` in it, as in all_rows(); `meshes.*.supervision.…` and
// `controller.supervision.…` are found at `supervision.…`.
const KeyRow* find_row(std::string_view path);
// The row of `key` below `path`: its own, or the one of `*`.
const KeyRow* find_child(std::string_view path, std::string_view key);
// The keys that may be written below `path`, in the order of the rows; without `*` and `[]`.
std::vector<std::string_view> keys_below(std::string_view path);

// Whether the mark of a key is none, or to be passed over.
bool is_taken(std::string_view path, UnbuiltKeys unbuilt);

bool word_in(std::string_view words, std::string_view word);
std::vector<std::string> split_words(std::string_view words);

}  // namespace monarch
