#include "supervisor/core/beats/beat_book.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/facts/held_ports.h"
#include "supervisor/core/health/fence.h"

namespace monarch {

namespace {

constexpr std::size_t kExplanationBytes = 4'096;
constexpr std::uint32_t kMostStarts = 100;  // of a host's daemon, that are told of

// A supervisor that has come back may have to wait that long for who is gone, and until then counts it among the
// others.
Duration patience_with_claims(const Supervision& supervision) { return supervision.lease * 2 + supervision.lost_after; }

}  // namespace

BeatBook::BeatBook(const JobCore& core, Term term, BeatBookHandlers handlers)
    : core_(core),
      term_(term),
      handlers_(std::move(handlers)),
      liveness_(core.spec().supervision, core.hosts().size()),
      claims_(patience_with_claims(core.spec().supervision)),
      peers_(core.hosts().size()) {}

std::string BeatBook::cut(std::string words) {
  words.resize(std::min(words.size(), kExplanationBytes));
  return words;
}

bool BeatBook::is_known(HostId host, std::uint64_t incarnation) const {
  return incarnation == core_.facts().host(host).incarnation;
}

// One that was given up may live on, and hold the link that it had: it neither joins nor ends in the new one's place.
bool BeatBook::is_known(HostId host, const Hello& hello) const {
  return hello.keeper_pid == core_.facts().host(host).keeper_pid;
}

void BeatBook::on_hello(HostId host, const Hello& hello, bool same_clock, Instant now) {
  Peer& peer = peers_[host.value()];
  peer.greeted = true;
  // It only grows, and its keeper stops at a few: more are no starts (I22).
  const bool may_be_so = hello.daemon_starts > 1 && hello.daemon_starts <= kMostStarts;
  if (may_be_so && hello.daemon_starts > core_.facts().host(host).daemon_starts) {
    (void)handlers_.decide(DaemonStarted{.host = host, .start = hello.daemon_starts});
  }
  peer.daemon_starts = hello.daemon_starts;
  if (same_clock) liveness_.same_clock(host);
  if (!is_launched(core_.facts().host(host).phase)) return;
  (void)handlers_.decide(WorkerJoined{.host = host, .incarnation = hello.incarnation});
  expect(host, now);
}

// Once for each worker (I22).
void BeatBook::on_keeper_gone(HostId host) {
  const HostState& state = core_.facts().host(host);
  if (is_joined(state.phase) && !state.failing) (void)handlers_.decide(WorkerFailing{.host = host});
}

void BeatBook::on_reserved(HostId host, Reserved reserved) {
  if (!core_.awaits(host, reserved)) return;
  cut_ports(host, reserved);
  reserved.error = cut(std::move(reserved.error));
  (void)handlers_.decide(PortsReserved{.host = host, .reserved = std::move(reserved)});
}

// Who answers with another number of ports than was asked for is refused by the core, which needs no more than one too
// many for that: all of them may be more than a record of the journal holds (I23).
void BeatBook::cut_ports(HostId host, Reserved& reserved) const {
  if (reserved.mesh.value() >= core_.spec().meshes.size())
    return reserved.ports.clear();  // a standby gang's: it has none
  const HeldPortsInput input{.mesh = core_.spec().meshes[reserved.mesh.value()],
                             .placement = core_.placement(),
                             .crew = core_.facts().crew(reserved.mesh, reserved.gang)};
  const Reserve asked = ports_to_hold(input, reserved.mesh, reserved.gang, host);
  const std::size_t enough = asked.count + asked.fixed.size() + 1;
  reserved.ports.resize(std::min(reserved.ports.size(), enough));
}

BeatBook::Answer BeatBook::on_beat(HostId host, const Beat& beat, Instant now) {
  if (beat.round_trip > Duration::zero()) liveness_.round_trip(host, beat.round_trip);
  if (const auto back = liveness_.heard(host, beat, now)) tell_health(*back);
  if (handlers_.on_host && is_newest(host, beat)) handlers_.on_host(host, beat);
  if (std::exchange(peers_[host.value()].warnings, beat.content.warnings) < beat.content.warnings &&
      handlers_.on_warned) {
    handlers_.on_warned(host);
  }
  for (const RankReport& report : beat.content.ranks) {
    // First: a rank that has ended meanwhile had written what it says.
    if (report.commit && handlers_.on_commit) handlers_.on_commit(host, report);
    note_rank(host, report);
    if (!handlers_.on_report || !core_.facts().has_rank(report.process.rank)) continue;
    if (judge(core_.facts(), host, report).of == ReportOf::kOfNow) handlers_.on_report(host, report, beat.sent_at);
  }
  const HostState& known = core_.facts().host(host);
  if (is_awaited(core_.state(), host) && is_joined(known.phase)) {
    (void)handlers_.decide(WorkerJoined{.host = host, .incarnation = known.incarnation});
  }
  Answer answer{.ack = ack_of(host, beat), .again = lost(host, beat, now)};
  if (!answer.ack.granted.empty()) {
    Instant& until = peers_[host.value()].grants_until;
    until = std::max(until, fence_of(now, answer.ack.lease));
  }
  return answer;
}

// A daemon that is started again goes on with higher numbers; another worker begins anew.
bool BeatBook::is_newest(HostId host, const Beat& beat) {
  Peer& peer = peers_[host.value()];
  const std::uint64_t incarnation = core_.facts().host(host).incarnation;
  if (std::exchange(peer.incarnation, incarnation) != incarnation) peer.newest_beat = 0;
  if (beat.seq < peer.newest_beat) return false;
  peer.newest_beat = beat.seq;
  return true;
}

Ack BeatBook::ack_of(HostId host, const Beat& beat) const {
  Ack ack{.seq = beat.seq, .lease = lease_length(core_.facts())};
  ack.say_hello = !peers_[host.value()].greeted;
  for (const RankReport& report : beat.content.ranks) {
    const Judgement judged = judge(core_.facts(), host, report);
    if (judged.granted) ack.granted.push_back(report.process);
    if (may_forget(host, report, judged.of)) ack.forget.push_back(report.process);
  }
  return ack;
}

bool BeatBook::may_forget(HostId host, const RankReport& report, ReportOf of) const {
  if (report.phase != RankPhase::kEnded || !report.output_complete) return false;
  const auto& ranks = peers_[host.value()].ranks;
  const auto known = ranks.find(report.process.rank);
  const bool recorded = known != ranks.end() && known->second.report.process.generation == report.process.generation &&
                        known->second.report.phase == RankPhase::kEnded && known->second.report.output_complete &&
                        handlers_.is_durable(known->second.ticket);
  if (recorded) return true;
  // Another generation was decided; until that is durable, who comes back may have to learn of this end (J1).
  return of == ReportOf::kSuperseded && handlers_.all_durable() &&
         (!handlers_.on_written || copied_.contains(report.process));
}

// At most once a heartbeat: what was sent since the last beat may still be on its way.
std::vector<Action> BeatBook::lost(HostId host, const Beat& beat, Instant now) {
  Peer& peer = peers_[host.value()];
  if (now - peer.resent_at < core_.spec().supervision.heartbeat) return {};
  peer.resent_at = now;
  // What is not durable yet was never said, so nothing of it was lost; said here, it would overtake its record (J1).
  if (!handlers_.all_durable()) return {};
  return core_.outstanding(host, beat.content.ranks);
}

}  // namespace monarch
