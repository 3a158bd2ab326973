#include "tests/sim/calls/ledger.h"

#include <algorithm>

#include "tests/sim/violation.h"
#include "transport/base/text.h"
#include "worker/core/post/guests.h"

namespace monarch::sim::calls {

namespace {

constexpr Duration kDeadlineSlack = Duration::milliseconds(50);  // from a post to its caller

}  // namespace

Tag Ledger::call(ProcessNumber caller, MeshId mesh, const std::vector<Rank>& ranks, bool quiet,
                 std::optional<Duration> deadline, Instant now, std::map<Rank, ProcessNumber> guests) {
  Call call{.caller = caller,
            .mesh = mesh,
            .waiting = {},
            .ended = {},
            .guests = std::move(guests),
            .ran = {},
            .quiet = quiet,
            .deadline = deadline,
            .since = now,
            .over = false,
            .abandoned = false};
  for (const Rank rank : ranks) call.waiting[rank] = 0;
  calls_.push_back(std::move(call));
  return calls_.size();
}

void Ledger::run(Tag tag, const RankId& rank, ProcessNumber process, std::uint64_t generation) {
  if (tag == kNobodys) return;
  Call& call = of(tag);
  const auto ended = call.ended.find(rank.rank);
  const auto waiting = call.waiting.find(rank.rank);
  must(ended != call.ended.end() || waiting != call.waiting.end(), "C5",
       text("call ", tag, " runs at rank ", rank.rank.value(), ", which it does not name"));
  std::uint64_t& ran = waiting != call.waiting.end() ? waiting->second : ended->second;
  must(ran == 0, "C2", text("call ", tag, " runs twice at rank ", rank.rank.value()));
  const auto meant = call.guests.find(rank.rank);
  must(meant == call.guests.end() || meant->second == process, "C9",
       text("call ", tag, " to guest ", rank.rank.value(), " is run by another"));
  ran = generation;
  call.ran[rank.rank] = process;
  Tag& last = last_run_[{call.caller, process}];
  must(tag > last, "C3",
       text("rank ", rank.rank.value(), " begins call ", tag, " after call ", last, " of the same sender"));
  last = tag;
}

void Ledger::answer(Tag tag, Rank rank, const CallOutcome& outcome, Tag body, const Faults& faults, Instant now) {
  Call& call = of(tag);
  must(!call.over, "C1", text("call ", tag, " has an answer after it was over"));
  const auto waiting = call.waiting.find(rank);
  must(waiting != call.waiting.end(), "C1", text("call ", tag, " has a second answer of rank ", rank.value()));
  const std::uint64_t ran = waiting->second;
  call.waiting.erase(waiting);
  call.ended[rank] = ran;
  ++outcomes_.at(static_cast<std::size_t>(outcome.kind));
  if (outcome.kind == OutcomeKind::kValue) {
    must(ran != 0 && ran == outcome.generation, "C5",
         text("call ", tag, " has a value of generation ", outcome.generation, " of rank ", rank.value(),
              ", and generation ", ran, " has run it"));
    must(body == answer_tag(tag, rank), "C5", text("call ", tag, " has the answer of another"));
  }
  explain(call, tag, rank, outcome, faults, now);
}

void Ledger::explain(const Call& call, Tag tag, Rank rank, const CallOutcome& outcome, const Faults& faults,
                     Instant now) const {
  const auto needs = [&](bool fault, const char* what) {
    must(fault, "C5", text("call ", tag, " to rank ", rank.value(), " ", what, " for no reason: ", outcome.text));
  };
  switch (outcome.kind) {
    case OutcomeKind::kValue:
    case OutcomeKind::kRemoteError: return;
    case OutcomeKind::kRankLost: return explain_lost(call, tag, rank, outcome, faults);
    case OutcomeKind::kDeadline:
      needs(call.deadline && now >= call.since + *call.deadline, "is over its deadline");
      // One that its post does not read yet has not been made.
      must(now <= call.since + *call.deadline + kDeadlineSlack || faults.queues_are_short || faults.posts_stand, "C4",
           text("call ", tag, " ends late after its deadline"));
      return;
    case OutcomeKind::kBusy: return needs(faults.queues_are_short, "meets a full queue");
    case OutcomeKind::kGone: return needs(faults.post_died || faults.answers_evicted, "is gone");
    case OutcomeKind::kCancelled: return needs(false, "is cancelled");
    case OutcomeKind::kRefused: return needs(faults.stale_callers, "is refused");
  }
}

void Ledger::explain_lost(const Call& call, Tag tag, Rank rank, const CallOutcome& outcome, const Faults& faults) {
  const auto needs = [&](bool fault, const char* what) {
    must(fault, "C5", text("call ", tag, " to ", rank.value(), " is lost ", what, ": ", outcome.text));
  };
  if (const auto guest = call.guests.find(rank); guest != call.guests.end()) {
    // A post that is started again knows none of before.
    needs(faults.guests_left.contains(guest->second) || faults.post_died, "for no reason");
    if (outcome.generation != 0) needs(outcome.text == Guests::kHasLeft, "in other words");
    return;
  }
  needs(faults.ended.contains({call.mesh, rank}), "for no reason");
  // A process that was there and has ended has a cause that its keeper tells.
  if (outcome.generation != 0) needs(outcome.text.starts_with(kKilled), "without its cause");
}

ProcessNumber Ledger::ran_by(Tag tag, Rank rank) const {
  const Call& call = calls_.at(tag - 1);
  const auto ran = call.ran.find(rank);
  return ran == call.ran.end() ? 0 : ran->second;
}

void Ledger::over(Tag tag, const std::string& refused, const Faults& faults) {
  Call& call = of(tag);
  must(!call.over, "C1", text("call ", tag, " is over twice"));
  call.over = true;
  if (!refused.empty()) {
    must(faults.stale_callers, "C5", text("call ", tag, " is refused: ", refused));
    must(call.ended.empty(), "C1", text("call ", tag, " is refused, and had answers"));
    call.waiting.clear();
    return;
  }
  // Of values of a quiet call nothing is said.
  for (const auto& [rank, ran] : call.waiting) {
    must(call.quiet && ran != 0, "C1", text("call ", tag, " is over without an outcome of rank ", rank.value()));
  }
  call.waiting.clear();
}

void Ledger::abandon(Tag tag) { of(tag).abandoned = true; }

std::size_t Ledger::open() const {
  return static_cast<std::size_t>(
      std::count_if(calls_.begin(), calls_.end(), [](const Call& call) { return !call.over && !call.abandoned; }));
}

void Ledger::judge() const {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    must(calls_[i].over || calls_[i].abandoned, "C4", text("call ", i + 1, " has not ended"));
  }
}

}  // namespace monarch::sim::calls
