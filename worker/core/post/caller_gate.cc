#include "worker/core/post/caller_gate.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch {

void CallerGate::ask(PeerLines::Ordered&& ordered, Instant now) {
  judge({std::move(ordered), now + kRosterPatience}, now);
}

void CallerGate::judge(Waiting&& one, Instant now) {
  const CallerName& caller = one.ordered.content->caller;
  const HostId from = one.ordered.origin.root;
  if (caller.mesh.empty()) return believed_.push_back(std::move(one.ordered));  // it is no rank, and says so
  const auto refuse = [&](std::string why) {
    refused_.push_back({std::move(one.ordered), OutcomeKind::kRefused, std::move(why)});
  };
  if (roster_.known()) {
    if (std::string why = roster_.no_such_rank(caller); !why.empty()) return refuse(std::move(why));
    if (std::string passed = roster_.passed(caller); !passed.empty()) return refuse(std::move(passed));
  }
  switch (roster_.place_of(caller, from)) {
    case RosterView::Place::kElsewhere:
      return refuse(
          text(roster_.rank_name(caller.rank), " is not on ", roster_.host_name(from), ", which says that it calls"));
    case RosterView::Place::kThere:
      if (waits(one)) break;
      return believed_.push_back(std::move(one.ordered));
    case RosterView::Place::kUnknown:
      if (now < one.due) break;
      return refuse(text("for ", to_text(kRosterPatience), " nobody has said that this start of ",
                         roster_.rank_name(caller.rank), " is on ", roster_.host_name(from)));
  }
  if (has_room_for(one)) return waiting_.push_back(std::move(one));
  refused_.push_back({std::move(one.ordered), OutcomeKind::kBusy,
                      text("too many calls of ", roster_.host_name(from), " wait for a roster that knows who calls")});
}

bool CallerGate::has_room_for(const Waiting& one) const {
  std::size_t calls = 0;
  std::uint64_t bytes = one.ordered.content->bytes();
  for (const Waiting& other : waiting_) {
    if (other.ordered.origin.root != one.ordered.origin.root) continue;
    ++calls;
    bytes += other.ordered.content->bytes();
  }
  return calls < kCalls && (calls == 0 || bytes <= kBytes);
}

// What the same caller asked before goes first.
bool CallerGate::waits(const Waiting& behind) const {
  return std::any_of(waiting_.begin(), waiting_.end(), [&behind](const Waiting& one) {
    return one.ordered.origin.root == behind.ordered.origin.root &&
           one.ordered.content->caller == behind.ordered.content->caller;
  });
}

void CallerGate::look(Instant now) {
  for (Waiting& one : std::exchange(waiting_, {})) judge(std::move(one), now);
}

void CallerGate::take_back(HostId root, AskNumber number) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& one) {
    return one.ordered.origin.root == root && one.ordered.origin.number == number;
  });
  if (found == waiting_.end()) return;
  refused_.push_back({std::move(found->ordered), OutcomeKind::kCancelled, "it has not begun"});
  waiting_.erase(found);
}

void CallerGate::root_passed(HostId root, const PostStart& now) {
  std::erase_if(waiting_, [&](const Waiting& one) {
    return one.ordered.origin.root == root && one.ordered.origin.root_start < now;
  });
}

Instant CallerGate::next_due() const {
  Instant due = Instant::never();
  for (const Waiting& one : waiting_) due = std::min(due, one.due);
  return due;
}

}  // namespace monarch
