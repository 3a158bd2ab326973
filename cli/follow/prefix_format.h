#pragma once

// PrefixFormat: what stands in front of each line of a rank, from a format such as "{mesh}/{rank} {time} ". What is
// between braces is known or refused; two braces stand for one.
//
// Thread: a value.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/follow/line_source.h"
#include "transport/base/result.h"

namespace monarch {

// Ranks that wrote the same line, shown once. One rank is a fold of one.
struct LineSources {
  LineSource first;
  std::set<std::uint32_t> ranks, gangs, local_ranks;
  std::set<std::uint64_t> generations;
  std::set<std::string> hosts;

  explicit LineSources(const LineSource& source) : first(source) { add(source); }
  void add(const LineSource& source);
  bool folded() const { return ranks.size() > 1; }
};

class PrefixFormat {
 public:
  // [mesh/rank@host] and a blank; of a fold [mesh/0-7 ×8].
  PrefixFormat() = default;
  // kInvalid names the place and the nearest placeholder.
  static Result<PrefixFormat> parse(std::string_view format);

  bool written() const { return written_; }
  // Whether it says when a line came, so that no two lines have the same prefix.
  bool has_time() const { return has_time_; }
  std::string expand(const LineSources& sources, WallTime time) const;

 private:
  enum class Field : std::uint8_t {
    kLiteral,
    kJob,
    kMesh,
    kRank,
    kHost,
    kGeneration,
    kGang,
    kLocalRank,
    kStream,
    kTime,
    kCount
  };
  struct Part {
    Field field = Field::kLiteral;
    std::string literal;
  };
  static std::string value(Field field, const LineSources& sources, WallTime time);

  std::vector<Part> parts_;  // empty: the default
  bool written_ = false;
  bool has_time_ = false;
  bool names_fold_ = false;  // {rank} and {count} are in it
};

// "×8 (0-7) ": which ranks wrote a line whose prefix does not say it.
std::string fold_mark(const LineSources& sources);

}  // namespace monarch
