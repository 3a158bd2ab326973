#include "cli/line_pattern.h"

#include <algorithm>
#include <utility>

#include "cli/line_pattern_parser.h"
#include "transport/base/text.h"

namespace monarch {

Result<LinePattern> LinePattern::parse(std::string_view pattern) {
  if (pattern.empty()) return Error{ErrorCode::kInvalid, "an empty pattern"};
  if (pattern.size() > kLongestPattern) {
    return Error{ErrorCode::kInvalid, text("a pattern of ", pattern.size(), " bytes; at most ", kLongestPattern)};
  }
  MONARCH_ASSIGN(CompiledPattern compiled, compile_pattern(pattern));
  LinePattern made;
  made.steps_ = std::move(compiled.steps);
  made.sets_ = std::move(compiled.sets);
  made.start_ = compiled.start;
  made.seen_.assign(made.steps_.size(), 0);
  return made;
}

// All that is reached from `step` without a byte, with a stack of our own: a pattern may be thousands of steps long.
void LinePattern::follow(std::uint32_t step, bool at_begin, bool at_end, Closure& closure) {
  std::vector<std::uint32_t> stack = {step};
  while (!stack.empty()) {
    const std::uint32_t at = stack.back();
    stack.pop_back();
    if (seen_[at] == mark_) continue;
    seen_[at] = mark_;
    const Step& here = steps_[at];
    switch (here.kind) {
      case Step::Kind::kMatch: closure.matched = true; break;
      case Step::Kind::kByte: closure.steps.push_back(at); break;
      case Step::Kind::kSplit:
        stack.push_back(here.other);
        stack.push_back(here.next);
        break;
      case Step::Kind::kBegin:
        if (at_begin) stack.push_back(here.next);
        break;
      case Step::Kind::kEnd:
        closure.steps.push_back(at);  // for the end, should it be here
        if (at_end) stack.push_back(here.next);
        break;
    }
  }
}

std::int32_t LinePattern::state_of(Closure closure) {
  if (closure.matched) return kMatched;
  std::sort(closure.steps.begin(), closure.steps.end());
  const auto known = known_.find(closure.steps);
  if (known != known_.end()) return known->second;
  State state;
  state.next.fill(kUnknown);
  ++mark_;
  Closure end;
  for (const std::uint32_t step : closure.steps) {
    // ^ after a $: the line is empty, and only begin_state() can know that it begins here.
    if (steps_[step].kind == Step::Kind::kEnd) follow(steps_[step].next, false, true, end);
  }
  state.matches_at_end = end.matched;
  state.steps = closure.steps;
  const auto number = static_cast<std::int32_t>(states_.size());
  states_.push_back(std::move(state));
  known_.emplace(std::move(closure.steps), number);
  return number;
}

std::int32_t LinePattern::begin_state() {
  if (begin_ != kUnknown) return begin_;
  ++mark_;
  Closure closure;
  follow(start_, true, false, closure);
  begin_ = state_of(std::move(closure));
  return begin_;
}

void LinePattern::forget_states() {
  states_.clear();
  known_.clear();
  begin_ = kUnknown;
}

std::int32_t LinePattern::next_state(std::int32_t from, std::uint8_t byte) {
  ++mark_;
  Closure closure;
  for (const std::uint32_t step : states_[static_cast<std::size_t>(from)].steps) {
    const Step& here = steps_[step];
    if (here.kind == Step::Kind::kByte && sets_[here.set][byte]) follow(here.next, false, false, closure);
  }
  follow(start_, false, false, closure);
  return state_of(std::move(closure));
}

bool LinePattern::matches(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) {  // beginning and end are one place
    ++mark_;
    Closure closure;
    follow(start_, true, true, closure);
    return closure.matched;
  }
  if (states_.size() > kMostStates) forget_states();
  std::int32_t state = begin_state();
  for (const char c : line) {
    if (state == kMatched) return true;
    const auto byte = static_cast<std::uint8_t>(c);
    std::int32_t next = states_[static_cast<std::size_t>(state)].next[byte];
    if (next == kUnknown) {
      next = next_state(state, byte);
      if (states_.size() <= kMostStates) {
        states_[static_cast<std::size_t>(state)].next[byte] = next;
      } else {
        // Many states for one line: all but the present one are let go of.
        Closure kept{
            .steps = next == kMatched ? std::vector<std::uint32_t>() : states_[static_cast<std::size_t>(next)].steps,
            .matched = next == kMatched};
        forget_states();
        next = state_of(std::move(kept));
      }
    }
    state = next;
  }
  return state == kMatched || states_[static_cast<std::size_t>(state)].matches_at_end;
}

}  // namespace monarch
