#include "worker/core/daemon_core.h"

#include <algorithm>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/limits.h"

namespace monarch::daemon {

namespace {

bool tells_progress_alone(const RankReport& before, const RankReport& after) {
  if (after.progress.first != before.progress.first || after.progress.past != before.progress.past) return false;
  return after.phase == before.phase && after.pid == before.pid && after.held == before.held &&
         after.standstill == before.standstill && after.ready == before.ready && after.ended_at == before.ended_at &&
         after.commit == before.commit && !(after.progress == before.progress && after.talk_drops == before.talk_drops);
}

}  // namespace

std::vector<Action> DaemonCore::step(const Event& event, Instant now) {
  Actions actions;
  std::visit([&](const auto& e) { on(e, now, actions); }, event);
  return actions;
}

void DaemonCore::on(const Started& event, Instant now, Actions& actions) {
  last_heard_ = now;
  // Whoever started the worker is its first supervisor: what came before it is stale, also where the disk knows no
  // promise.
  floor_ = event.term;
  if (event.term > promised_) promise(event.term, actions);
}

void DaemonCore::on(const FrameHeard& event, Instant now, Actions& actions) {
  if (event.job != options_.job) {
    ++counters_.foreign_job;
    return;
  }
  if (event.term < std::max({promised_, floor_, pending_.value_or(promised_)})) {
    ++counters_.lower_term;
    return;
  }
  if (event.term == promised_) {
    last_heard_ = now;
    return std::visit([&](const auto& message) { obey(message, event, now, actions); }, event.message);
  }
  if (held_.size() >= kHeldFrames) {
    ++counters_.held_overflow;
    return;
  }
  held_.push_back(event);
  // With a promise on its way, a still higher one follows when that is done.
  if (!pending_) promise(event.term, actions);
}

void DaemonCore::on(const PromisePersisted& event, Instant now, Actions& actions) {
  if (!pending_ || event.term != *pending_) return;  // ignored: told before
  pending_.reset();
  promised_ = event.term;
  std::deque<FrameHeard> held;
  held.swap(held_);
  for (const FrameHeard& frame : held) on(frame, now, actions);
}

void DaemonCore::on(const PromiseFailed& event, Instant, Actions&) {
  if (!pending_ || event.term != *pending_) return;  // ignored: told before
  ++counters_.promise_failed;
  pending_.reset();
  // Without a durable promise two supervisors could be obeyed in turn. Theirs will come again, and with it our attempt.
  held_.clear();
}

void DaemonCore::on(const RankTold& event, Instant now, Actions& actions) {
  const auto [found, is_new] = ranks_.try_emplace(event.report.process, RankState{event.report, Instant{}});
  RankReport& report = found->second.report;
  const bool was_ended = !is_new && report.phase == RankPhase::kEnded;
  const RankReport before = std::exchange(report, event.report);
  report.stdout_bytes = is_new ? 0 : before.stdout_bytes;
  report.stderr_bytes = is_new ? 0 : before.stderr_bytes;
  report.output_complete = !is_new && before.output_complete;
  report.error_bytes = is_new ? 0 : before.error_bytes;
  report.evidence_at = is_new ? Instant::never() : before.evidence_at;
  if (report.phase == RankPhase::kEnded && !was_ended) last_end_ = now;
  // How far a rank is goes with the next beat; a rank may say it often.
  actions.emplace_back(BeatChanged{.at_once = is_new || !tells_progress_alone(before, event.report)});
}

// Nothing of it runs under that name; it is told of until what it wrote is safe.
void DaemonCore::on(const TakenOver& event, Instant, Actions& actions) {
  const auto found = ranks_.find(event.standby);
  if (found == ranks_.end()) return;  // ignored: a daemon before this one knew of it
  found->second.report.phase = RankPhase::kEnded;
  actions.emplace_back(BeatChanged{.at_once = true});
}

void DaemonCore::on(const OutputTold& event, Instant, Actions& actions) {
  const auto found = ranks_.find(event.incarnation);
  if (found == ranks_.end()) return;  // ignored: forgotten
  RankReport& report = found->second.report;
  const bool completed = event.complete && !report.output_complete;
  report.stdout_bytes = std::max(report.stdout_bytes, event.stdout_bytes);
  report.stderr_bytes = std::max(report.stderr_bytes, event.stderr_bytes);
  report.output_complete = report.output_complete || event.complete;
  report.error_bytes = std::max(report.error_bytes, event.error_bytes);
  report.evidence_at = event.evidence_at;
  actions.emplace_back(BeatChanged{.at_once = completed});
}

void DaemonCore::on(const EndForetold&, Instant now, Actions&) { foretold_until_ = now + limits::kForetold; }

void DaemonCore::on(const StoodStill& event, Instant, Actions&) {
  last_heard_ = last_heard_ + event.gap;
  last_end_ = last_end_ + event.gap;
}

void DaemonCore::on(const Tick&, Instant now, Actions& actions) {
  if (now >= next_due()) shut_down(last_heard_ < foretold_until_ ? 0 : kExitOrphaned, actions);
}

Instant DaemonCore::next_due() const {
  if (shut_down_ || any_live()) return Instant::never();
  // What was waited under a lease counts: ranks are killed by then as well.
  const bool foretold = last_heard_ < foretold_until_;
  const Instant orphaned = last_heard_ + std::max(last_lease_, foretold ? options_.hearing : options_.orphan_ttl);
  return std::max(orphaned, last_end_ + std::min(options_.hearing, options_.orphan_ttl));
}

std::vector<RankReport> DaemonCore::reports() const {
  std::vector<RankReport> reports;
  reports.reserve(ranks_.size());
  for (const auto& [incarnation, rank] : ranks_) reports.push_back(rank.report);
  return reports;
}

void DaemonCore::promise(Term term, Actions& actions) {
  MONARCH_ASSERT_BECAUSE(term > promised_, "a promise only rises");
  pending_ = term;
  actions.emplace_back(PersistPromise{term});
}

void DaemonCore::obey(const Ack& ack, const FrameHeard& frame, Instant now, Actions& actions) {
  if (ack.say_hello) actions.emplace_back(SayHello{});
  forget(ack, actions);
  if (frame.sent_at) {
    renew(ack, *frame.sent_at, now, actions);
  } else {
    ++counters_.unknown_beat;
  }
}

void DaemonCore::obey(const Start& order, const FrameHeard&, Instant, Actions& actions) {
  // After the order to end, a start would only be killed: it was sent before the supervisor gave up on this worker.
  if (!shut_down_) actions.emplace_back(TellKeeper{order});
}

void DaemonCore::obey(const VaultTable& table, const FrameHeard&, Instant, Actions& actions) {
  actions.emplace_back(TellServant{table});
}

void DaemonCore::obey(const ForPost& message, const FrameHeard&, Instant, Actions& actions) {
  actions.emplace_back(TellServant{message});
}

void DaemonCore::obey(const ForKeeper& order, const FrameHeard&, Instant, Actions& actions) {
  actions.emplace_back(TellKeeper{order});
}

void DaemonCore::obey(const Shutdown&, const FrameHeard&, Instant, Actions& actions) { shut_down(0, actions); }

void DaemonCore::forget(const Ack& ack, Actions& actions) {
  KeeperForget told;
  for (const Incarnation& process : ack.forget) {
    const auto found = ranks_.find(process);
    if (found == ranks_.end()) continue;  // it was said before
    const RankReport& report = found->second.report;
    // Where output is still being written the rank is reported again, and the supervisor says it again.
    if (report.phase != RankPhase::kEnded || !report.output_complete) continue;
    told.processes.push_back(process);
    ranks_.erase(found);
  }
  if (told.processes.empty()) return;
  actions.emplace_back(TellKeeper{std::move(told)});
  actions.emplace_back(BeatChanged{.at_once = false});
}

void DaemonCore::renew(const Ack& ack, Instant sent_at, Instant now, Actions& actions) {
  last_lease_ = ack.lease;
  KeeperLease lease{.processes = {}, .until = sent_at + ack.lease};
  if (lease.until <= now) return;  // it came too late to grant anything
  for (const Incarnation& process : ack.granted) {
    const auto found = ranks_.find(process);
    // Only what runs here, at exactly that generation: START grants nothing, and neither does a name.
    if (found == ranks_.end() || found->second.report.phase == RankPhase::kEnded) continue;
    if (lease.until <= found->second.lease_until) continue;  // an older or a repeated answer
    found->second.lease_until = lease.until;
    lease.processes.push_back(process);
  }
  if (!lease.processes.empty()) actions.emplace_back(TellKeeper{std::move(lease)});
}

void DaemonCore::shut_down(std::int32_t exit_code, Actions& actions) {
  shut_down_ = true;
  actions.emplace_back(TellKeeper{KeeperShutdown{.exit_code = exit_code}});
}

bool DaemonCore::any_live() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const auto& entry) { return entry.second.report.phase != RankPhase::kEnded; });
}

}  // namespace monarch::daemon
