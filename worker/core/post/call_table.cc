#include "worker/core/post/call_table.h"

#include <algorithm>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

void CallTable::enter(const CallKey& key, const Entered& entered, Instant now) {
  Call call{.mesh = entered.mesh,
            .waiting = {},
            .quiet = entered.quiet,
            .has_deadline = entered.deadline.has_value(),
            .due = entered.deadline.value_or(now + kNamedAfter),
            .since = now,
            .bytes = entered.bytes,
            .what = entered.what};
  for (const Rank rank : entered.ranks) call.waiting.emplace(rank, CallPlace{});
  dues_of(call).emplace(call.due, key);
  const auto [at, fresh] = calls_.emplace(key, std::move(call));
  MONARCH_ASSERT(fresh);
  Caller& caller = callers_[key.door];
  ++caller.calls;
  caller.bytes += entered.bytes;
  if (at->second.waiting.empty()) return over(at);
  look_at_window(key.door);
}

bool CallTable::lasts(const CallKey& key) const {
  const auto call = calls_.find(key);
  return call != calls_.end() && !call->second.has_deadline;
}

std::vector<CallPlace> CallTable::places_of(const CallKey& key) const {
  std::vector<CallPlace> places;
  const auto call = calls_.find(key);
  if (call == calls_.end()) return places;
  for (const auto& [rank, place] : call->second.waiting) {
    if (place.number != 0) places.push_back(place);
  }
  return places;
}

void CallTable::asked(const CallKey& key, Rank rank, const CallPlace& place) {
  const auto call = calls_.find(key);
  if (call == calls_.end()) return;
  const auto waiting = call->second.waiting.find(rank);
  if (waiting != call->second.waiting.end()) waiting->second = place;
}

void CallTable::end(const CallKey& key, Rank rank, CallOutcome outcome, HeldBody body, Whence whence) {
  const auto call = calls_.find(key);
  if (call == calls_.end() || call->second.waiting.erase(rank) == 0) return;
  say(key, call->second, rank, std::move(outcome), std::move(body), whence);
  ended_.emplace_back(key, rank);
  if (call->second.waiting.empty()) over(call);
}

void CallTable::say(const CallKey& key, const Call& call, Rank rank, CallOutcome outcome, HeldBody body,
                    Whence whence) {
  if (call.quiet && outcome.kind == OutcomeKind::kValue) return;
  answers_.say(key.door, key.id, rank, std::move(outcome), std::move(body), whence);
}

void CallTable::over(Calls::iterator call) {
  const CallKey key = call->first;
  answers_.over(key.door, key.id);
  over_.push_back(key);
  dues_of(call->second).erase({call->second.due, key});
  Caller& caller = callers_[key.door];
  --caller.calls;
  caller.bytes -= call->second.bytes;
  calls_.erase(call);
  look_at_window(key.door);
}

void CallTable::look_at_window(DoorId door) {
  Caller& caller = callers_[door];
  const bool full = caller.calls >= limits_.calls || caller.bytes >= limits_.call_bytes;
  if (full == caller.held) return;
  caller.held = full;
  if (full) {
    out_.emplace_back(post_action::HoldDoor{door});
  } else {
    out_.emplace_back(post_action::ReadDoor{door});
  }
}

std::vector<CallPlace> CallTable::end_all(Calls::iterator call, OutcomeKind kind, const std::string& text) {
  std::vector<CallPlace> places;
  CallOutcome outcome;
  outcome.kind = kind;
  outcome.text = text;
  for (const auto& [rank, place] : call->second.waiting) {
    if (place.number != 0) places.push_back(place);
    say(call->first, call->second, rank, outcome);
    ended_.emplace_back(call->first, rank);
  }
  over(call);
  return places;
}

std::vector<CallPlace> CallTable::cancel(const CallKey& key) {
  const auto call = calls_.find(key);
  if (call == calls_.end()) return {};
  return end_all(call, OutcomeKind::kCancelled, "its caller has cancelled it");
}

std::vector<CallPlace> CallTable::expire(Instant now) {
  std::vector<CallPlace> places;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const auto call = calls_.find(deadlines_.begin()->second);
    const Duration passed = now - call->second.since;
    const auto ended = end_all(call, OutcomeKind::kDeadline, text("its deadline has passed, after ", to_text(passed)));
    places.insert(places.end(), ended.begin(), ended.end());
  }
  return places;
}

std::vector<CallPlace> CallTable::left(DoorId door) {
  std::vector<CallPlace> places;
  for (auto call = calls_.lower_bound({door, 0}); call != calls_.end() && call->first.door == door;) {
    const auto waiting = places_of(call->first);
    places.insert(places.end(), waiting.begin(), waiting.end());
    dues_of(call->second).erase({call->second.due, call->first});
    call = calls_.erase(call);
  }
  callers_.erase(door);
  return places;
}

Instant CallTable::next_due() const {
  const Instant deadline = deadlines_.empty() ? Instant::never() : deadlines_.begin()->first;
  const Instant name = unnamed_.empty() ? Instant::never() : std::max(unnamed_.begin()->first, named_again_);
  return std::min(deadline, name);
}

std::vector<CallTable::Waiting> CallTable::take_long_waits(Instant now) {
  std::vector<Waiting> waits;
  if (unnamed_.empty() || now < std::max(unnamed_.begin()->first, named_again_)) return waits;
  named_again_ = now + kNamedAfter;
  while (!unnamed_.empty() && unnamed_.begin()->first <= now + kNamedTogether) {
    const CallKey key = unnamed_.begin()->second;
    const Call& call = calls_.find(key)->second;
    Waiting wait{.call = key, .what = call.what, .mesh = call.mesh, .ranks = {}, .since = now - call.since};
    for (const auto& [rank, place] : call.waiting) wait.ranks.push_back(rank);
    waits.push_back(std::move(wait));
    unnamed_.erase(unnamed_.begin());
  }
  return waits;
}

}  // namespace monarch
