#pragma once

// Values of flags: durations, moments, counts and lists of ranks; durations are read as the spec reads them.
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/args/command.h"
#include "transport/base/result.h"
#include "transport/base/time.h"

namespace monarch {

// The character or number is taken off the front of `rest`; false: something else is there, and nothing is taken.
bool take_character(std::string_view& rest, char wanted);
bool take_number(std::string_view& rest, std::uint32_t& number);

// "3,7-9": ranks of a mesh.
class RankList {
 public:
  static Result<RankList> parse(std::string_view written);
  bool contains(std::uint32_t rank) const;
  std::uint32_t largest() const;

 private:
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };
  std::vector<Range> ranges_;
};

// Both give nothing where the flag is not written, and an error that names the flag where its value is wrong.
Result<std::optional<Duration>> duration_flag(const Arguments& arguments, std::string_view flag);
Result<std::optional<std::uint64_t>> count_flag(const Arguments& arguments, std::string_view flag);

// A moment: how long ago ("10m"), a time of day ("12:04:41", the last one), or a date with or without one
// ("2026-11-20T12:04:41.120Z"); all in UTC, as events are shown.
Result<WallTime> parse_moment(std::string_view written, WallTime now);
Result<std::optional<WallTime>> moment_flag(const Arguments& arguments, std::string_view flag, WallTime now);

}  // namespace monarch
