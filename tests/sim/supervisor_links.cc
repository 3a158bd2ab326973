// As supervisor/workers/worker_links.cc: what beats say becomes what the core is told, and what they lack is said
// again.

#include <algorithm>
#include <utility>

#include "supervisor/core/health/fence.h"
#include "tests/sim/checker.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

bool advances(const RankReport& known, const RankReport& report) {
  if (known.process.generation != report.process.generation) return true;
  return report.phase > known.phase || (!known.ready && report.ready) || (known.pid == 0 && report.pid != 0) ||
         (known.end.kind == EndKind::kNone && report.end.kind != EndKind::kNone) ||
         (!known.output_complete && report.output_complete);
}

std::string user_id_of(HostId host) { return text("worker/", host.value()); }

}  // namespace

void Supervisor::on_message(const Up& message) {
  if (!open()) return;
  world_.checker->reads(message);
  const HostId host = message.host;
  if (message.term > term_) return on_later_term(host, message.term);
  switch (table_.bind(LinkId(message.link), user_id_of(host), user_id_of(host))) {
    case LinkTable::Bound::kNew:
    case LinkTable::Bound::kMoved: peers_[host.value()].greeted = false; break;
    case LinkTable::Bound::kSame: break;
    case LinkTable::Bound::kStale:
    case LinkTable::Bound::kForged: return;
  }
  if (const auto* hello = std::get_if<Hello>(&message.message)) {
    peers_[host.value()].greeted = true;
    joined(host, hello->incarnation);
  } else if (const auto* beat = std::get_if<Beat>(&message.message)) {
    on_beat(host, *beat);
  } else if (const auto* gone = std::get_if<KeeperGone>(&message.message)) {
    const HostState& state = state_parts::host(core_->state(), host);
    const bool news = state.phase == HostPhase::kJoined && !state.failing && gone->incarnation == state.incarnation;
    if (news) (void)decide(WorkerFailing{.host = host});
  } else if (const auto& reserved = std::get<Reserved>(message.message); core_->awaits(host, reserved)) {
    (void)decide(PortsReserved{.host = host, .reserved = reserved});
  }
}

// No two supervisors of this simulation live at a time: what is in hand never says that another one came after this.
void Supervisor::on_later_term(HostId host, Term term) {
  const HostPhase phase = state_parts::host(core_->state(), host).phase;
  if (phase != HostPhase::kLaunched && phase != HostPhase::kJoined) return;
  if (claims_->claim(host, term, now())) world_.note("claims a later term", host.value());
  const std::vector<HostId> hosts = jury(core_->state());
  if (claims_->are_believed(hosts) || world_.mutant(Mutant::kBelieveAnyTerm)) {
    world_.checker->gives_way(hosts);
    return leave(75);
  }
  claims_due_.set(claims_->next_deadline());
}

void Supervisor::judge_claims() {
  for (const HostId host : claims_->alone(now())) distrust(host);
  claims_due_.set(claims_->next_deadline());
}

void Supervisor::distrust(HostId host) {
  claims_->forget(host);
  world_.note("distrusted", host.value());
  (void)decide(HostDistrusted{.host = host, .why = "a later term", .grants_until = grants_until(host)});
}

void Supervisor::stop_expecting(HostId host) {
  liveness_->stop_expecting(host);
  claims_->forget(host);
}

// J3: whatever the supervisor before this one granted, it may have granted a moment ago.
void Supervisor::expect_again(HostId host) {
  const Supervision& supervision = core_->spec().supervision;
  peers_[host.value()].grants_until = fence_of(now(), std::max(supervision.lease, supervision.orphan_ttl));
  const Duration patience = supervision.lease * 2 - supervision.lost_after;
  liveness_->expect(host, now() + std::max(patience, Duration::zero()));
  watch_health();
}

void Supervisor::on_beat(HostId host, const Beat& beat) {
  if (beat.round_trip > Duration::zero()) liveness_->round_trip(host, beat.round_trip);
  world_.checker->counts(host, beat);
  if (liveness_->heard(host, beat, now())) {
    (void)decide(HostDoubted{.host = host, .heard_again = true, .silence = Duration::zero()});
  }
  for (const RankReport& report : beat.content.ranks) {
    // First: a rank that has ended meanwhile had written what it says.
    if (report.commit) hear_commit(host, report);
    note_rank(host, report);
    const bool there = core_->has_rank(report.process.rank) && core_->where_is(report.process.rank) == host;
    const bool its_own = there && core_->concerns(host, report);
    if (its_own && !world_.mutant(Mutant::kNeverHung)) hangs_->on_report(host, report, beat.sent_at, now());
  }
  const HostState& known = state_parts::host(core_->state(), host);
  if (known.awaited && known.phase == HostPhase::kJoined) {
    (void)decide(WorkerJoined{.host = host, .incarnation = known.incarnation});
  }
  const Ack ack = ack_of(host, beat);
  if (!ack.granted.empty()) {
    Instant& until = peers_[host.value()].grants_until;
    until = std::max(until, fence_of(now(), ack.lease));
  }
  world_.checker->acks(host, ack, *core_);
  send(host, ack);
  if (!world_.mutant(Mutant::kNeverResend)) resend_lost(host, beat);
}

void Supervisor::open_commits() {
  commits_.emplace(*core_,
                   CommitDeskHandlers{.decide = [this](const CoreEvent& event) { return decide(event); },
                                      .is_durable = [this](std::uint64_t ticket) { return durable_ticket_ >= ticket; },
                                      .answer = [this](HostId host, const CommitAnswer& told) { answer(host, told); }});
}

void Supervisor::hear_commit(HostId host, RankReport report) {
  if (world_.mutant(Mutant::kCommitAnyGeneration) && core_->has_rank(report.process.rank)) {
    const Generation current = state_parts::gang_with(*core_, report.process.rank).generation;
    if (report.process.generation > current) report.process.generation = current;  // earlier ones have their late words
    host = core_->placement().host_of(report.process.rank);
  }
  commits_->hear(host, report, now());
}

void Supervisor::answer(HostId host, const CommitAnswer& told) {
  world_.checker->answers(told);
  send(host, told);
}

void Supervisor::note_rank(HostId teller, const RankReport& said) {
  HostId host = teller;
  RankReport report = said;
  Peer& peer = peers_[host.value()];
  const auto known = peer.ranks.find(report.process.rank);
  const bool believes = world_.mutant(Mutant::kBelieveAnybody) && core_->has_rank(report.process.rank);
  if (believes) host = core_->placement().host_of(report.process.rank);
  if (world_.mutant(Mutant::kBelieveAnyGeneration) && world_.checker->is_of_spec(report.process.rank)) {
    const Generation current = state_parts::gang_with(*core_, report.process.rank).generation;
    if (report.process.generation > current) report.process.generation = current;  // earlier ones have their late words
  }
  if (!core_->concerns(host, report)) return;
  const bool news = known == peer.ranks.end() || advances(known->second.report, report);
  if (!news && !world_.mutant(Mutant::kRecordAll)) return;
  world_.note("rank changed", host.value(), report.process.rank.mesh.value(), report.process.rank.rank.value(),
              static_cast<std::uint64_t>(report.phase) * 10 + static_cast<std::uint64_t>(report.end.kind));
  world_.checker->believes(teller, said);
  RankChanged change{.host = host,
                     .report = report,
                     .ended_at = liveness_->to_ours(host, report.ended_at),
                     .uncertainty = liveness_->uncertainty(host)};
  if (report.phase == RankPhase::kWedged) change.grants_until = grants_until(host);
  peer.ranks[report.process.rank] = {.report = report, .ticket = decide(change)};
}

Ack Supervisor::ack_of(HostId host, const Beat& beat) const {
  const Peer& peer = peers_[host.value()];
  Ack ack{.seq = beat.seq, .lease = core_->lease_length()};
  ack.say_hello = !peer.greeted;
  for (const RankReport& report : beat.content.ranks) {
    const bool granted = core_->concerns(host, report) && core_->grants(report.process);
    if (granted || world_.mutant(Mutant::kAckAnything)) {
      ack.granted.push_back(report.process);
    }
    const auto known = peer.ranks.find(report.process.rank);
    bool recorded = known != peer.ranks.end() && known->second.report.process.generation == report.process.generation &&
                    known->second.report.phase == RankPhase::kEnded && known->second.report.output_complete &&
                    durable_ticket_ >= known->second.ticket;
    // That it has ended was recorded before its successor was decided.
    recorded = recorded || (core_->is_superseded(host, report) && durable_ticket_ == last_ticket_);
    if (world_.mutant(Mutant::kForgetBeforeDurable)) recorded = true;
    if (recorded && report.phase == RankPhase::kEnded && report.output_complete) {
      ack.forget.push_back(report.process);
    }
  }
  return ack;
}

Instant Supervisor::grants_until(HostId host) const {
  if (world_.mutant(Mutant::kNoLeaseWait)) return {};
  return peers_[host.value()].grants_until;
}

void Supervisor::resend_lost(HostId host, const Beat& beat) {
  Peer& peer = peers_[host.value()];
  if (now() - peer.resent_at < core_->spec().supervision.heartbeat) return;
  peer.resent_at = now();
  // What is not durable yet was never said, so nothing of it can be lost.
  if (durable_ticket_ < last_ticket_ && !world_.mutant(Mutant::kResendBeforeDurable)) return;
  for (const Action& action : core_->outstanding(host, beat.content.ranks)) {
    world_.checker->resends(*core_, action);
    if (const auto* reserve = std::get_if<SendReserve>(&action)) send(host, reserve->message);
    if (const auto* start = std::get_if<SendStart>(&action)) send(host, start->message);
    if (const auto* stop = std::get_if<SendStop>(&action)) send(host, stop->message);
    if (const auto* shutdown = std::get_if<SendShutdown>(&action)) send(host, shutdown->message);
  }
}

template <class Message>
void Supervisor::send(HostId host, const Message& message) {
  const std::string user_id = user_id_of(host);
  const std::optional<LinkId> link = table_.link_of(user_id);
  if (!link) return;
  if (world_.network->send_down(host, link->value(), Down{.term = term_, .message = message})) return;
  table_.forget(user_id, *link);
}

template void Supervisor::send(HostId host, const Reserve& message);
template void Supervisor::send(HostId host, const Start& message);
template void Supervisor::send(HostId host, const Stop& message);
template void Supervisor::send(HostId host, const Shutdown& message);
template void Supervisor::send(HostId host, const Signal& message);

void Supervisor::health_turn() {
  std::vector<HostVerdict> verdicts;
  const Instant now_is = now();
  if (world_.mutant(Mutant::kSleepThroughStall) && last_health_turn_) {
    const Duration step = core_->spec().supervision.heartbeat / 2;
    for (Instant t = *last_health_turn_ + step; t < now_is; t = t + step) {
      for (const HostVerdict& verdict : liveness_->turn(t)) verdicts.push_back(verdict);
    }
  }
  last_health_turn_ = now_is;
  for (const HostVerdict& verdict : liveness_->turn(now_is)) verdicts.push_back(verdict);
  if (world_.mutant(Mutant::kNoBrake)) judge_without_brake(verdicts);
  world_.checker->judges_together(verdicts, *liveness_);
  for (const HostVerdict& verdict : verdicts) {
    world_.note(verdict.health == HostHealth::kSilent ? "silent" : "suspect", verdict.host.value());
    world_.checker->judges(verdict);
    if (verdict.health == HostHealth::kSuspect) {
      (void)decide(HostDoubted{.host = verdict.host, .silence = verdict.silence});
    }
    if (verdict.health != HostHealth::kSilent || world_.mutant(Mutant::kNeverJudge)) continue;
    if (claims_->claimed_by(verdict.host)) {
      distrust(verdict.host);
    } else {
      (void)decide(
          HostSilent{.host = verdict.host, .silence = verdict.silence, .grants_until = grants_until(verdict.host)});
    }
  }
  watch_health();
}

// A planted bug: each host by itself.
void Supervisor::judge_without_brake(std::vector<HostVerdict>& verdicts) const {
  for (std::uint32_t i = 0; i < world_.hosts.size(); ++i) {
    const Duration silence = liveness_->silence(HostId(i), now());
    if (liveness_->health(HostId(i)) != HostHealth::kSuspect || silence < core_->spec().supervision.lost_after)
      continue;
    verdicts.push_back({.host = HostId(i), .health = HostHealth::kSilent, .silence = silence});
  }
}

void Supervisor::watch_health() { health_.set(liveness_->next_deadline()); }

}  // namespace monarch::sim
