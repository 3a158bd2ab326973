#include "worker/core/post/door_answers.h"

#include <utility>

namespace monarch {

void DoorAnswers::left(DoorId door) {
  doors_.erase(door);
  waiting_.erase(door);
}

void DoorAnswers::say(DoorId door, std::uint64_t id, Rank rank, CallOutcome&& outcome, HeldBody body, Whence whence) {
  const bool here = whence == Whence::kHere;
  outcome.body = body.body();
  if (!doors_.contains(door) || !goes_with_others(outcome, limits_)) {
    flush(door);
    out_.emplace_back(post_action::ToDoor{
        door, PostAnswer{.id = id, .rank = rank.value(), .outcome = std::move(outcome), .here = here}});
    return;
  }
  const std::size_t bytes = bytes_together(outcome);
  const auto known = waiting_.find(door);
  if (known != waiting_.end() && (known->second.bytes + bytes > limits_.together_bytes ||
                                  known->second.message.answers.size() >= limits_.together)) {
    flush(door);
  }
  Waiting& waiting = waiting_[door];
  waiting.message.answers.push_back({.id = id, .rank = rank.value(), .outcome = std::move(outcome), .here = here});
  waiting.bytes += bytes;
  if (body.bytes() > 0) waiting.bodies.push_back(std::move(body));
}

// The newest answer may be this call's last.
void DoorAnswers::over(DoorId door, std::uint64_t id, std::string refused) {
  const auto waiting = waiting_.find(door);
  if (refused.empty() && waiting != waiting_.end() && waiting->second.message.answers.back().id == id) {
    waiting->second.message.answers.back().last = true;
    return;
  }
  flush(door);
  out_.emplace_back(post_action::ToDoor{door, PostOver{.id = id, .refused = std::move(refused)}});
}

void DoorAnswers::flush(DoorId door) {
  const auto found = waiting_.find(door);
  if (found == waiting_.end()) return;
  out_.emplace_back(post_action::ToDoor{door, std::move(found->second.message)});
  waiting_.erase(found);  // its bodies are let go at the end of the step, behind the message
}

void DoorAnswers::flush() {
  while (!waiting_.empty()) flush(waiting_.begin()->first);
}

}  // namespace monarch
