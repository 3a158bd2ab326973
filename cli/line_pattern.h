#pragma once

// LinePattern: the regular expressions of --grep, matched in time linear in the line whatever the pattern is (no backtracking: the
// states of the automaton are followed together, and kept as they are found). POSIX extended syntax with \d \w \s and (?i) in
// front; no back-references, which no linear matcher has.
//
// Thread: a value; matching fills its cache.

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "transport/base/result.h"

namespace monarch {

class LinePattern {
 public:
  static constexpr std::size_t kLongestPattern = 1000;
  static constexpr std::size_t kMostSteps = 5000;  // of the compiled pattern; a larger one is refused

  // kInvalid names the column.
  static Result<LinePattern> parse(std::string_view pattern);

  // Somewhere in the line, which has no newline; a carriage return at its end does not count.
  bool matches(std::string_view line);

  // One step of the automaton, for its compiler.
  struct Step {
    enum class Kind : std::uint8_t { kByte, kSplit, kBegin, kEnd, kMatch };
    Kind kind = Kind::kMatch;
    std::uint32_t next = 0;
    std::uint32_t other = 0;  // kSplit
    std::uint32_t set = 0;    // kByte: which of the sets
  };
  using ByteSet = std::bitset<256>;

 private:
  static constexpr std::size_t kMostStates = 1000;  // kept; then they are found anew
  static constexpr std::int32_t kUnknown = -1;
  static constexpr std::int32_t kMatched = -2;

  struct State {
    std::vector<std::uint32_t> steps;  // kByte and kEnd, sorted
    bool matches_at_end = false;
    std::array<std::int32_t, 256> next{};
  };
  struct Closure {
    std::vector<std::uint32_t> steps;
    bool matched = false;
  };
  void follow(std::uint32_t step, bool at_begin, bool at_end, Closure& closure);
  std::int32_t state_of(Closure closure);
  std::int32_t begin_state();
  void forget_states();
  std::int32_t next_state(std::int32_t from, std::uint8_t byte);

  std::vector<Step> steps_;
  std::vector<ByteSet> sets_;
  std::uint32_t start_ = 0;
  std::vector<State> states_;
  std::int32_t begin_ = kUnknown;  // of states_
  std::map<std::vector<std::uint32_t>, std::int32_t> known_;
  std::vector<std::uint32_t> seen_;  // per step, the mark of the walk that saw it
  std::uint32_t mark_ = 0;
};

}  // namespace monarch
