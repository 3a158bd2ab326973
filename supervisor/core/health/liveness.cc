#include "supervisor/core/health/liveness.h"

#include <algorithm>

#include "transport/base/assert.h"

namespace monarch {

Liveness::Liveness(const Supervision& supervision, std::size_t hosts)
    : supervision_(supervision),
      peers_(hosts, Peer(supervision.heartbeat)),
      health_(supervision.heartbeat),
      brake_(supervision.heartbeat, supervision.lease) {}

void Liveness::expect(HostId host, Instant now) {
  Peer& peer = peers_[host.value()];
  peer.health = HostHealth::kFresh;
  peer.last_heard = now;
  peer.held = false;
  if (!last_turn_) last_turn_ = now;  // a stall before the first turn is one, too
}

void Liveness::stop_expecting(HostId host) { peers_[host.value()].health = HostHealth::kUnknown; }

std::optional<HostVerdict> Liveness::heard(HostId host, const Beat& beat, Instant now) {
  Peer& peer = peers_[host.value()];
  const Duration offset = now - beat.sent_at;
  if (!peer.offset || offset < *peer.offset) peer.offset = offset;
  // A daemon whose main loop hangs still beats; its beats say so, and count as silence.
  if (peer.health == HostHealth::kUnknown || beat.loop_age > supervision_.suspect_after) return std::nullopt;
  // Of a pause that was ours, its beats say nothing; nor do those of a host that was given time to come.
  const bool awake = last_turn_ && now - *last_turn_ <= supervision_.heartbeat;
  if (awake && peer.last_heard <= now) peer.arrivals.add(std::min(now - peer.last_heard, supervision_.suspect_after));
  peer.last_heard = now;
  peer.held = false;
  if (peer.health == HostHealth::kFresh) return std::nullopt;
  peer.health = HostHealth::kFresh;
  return HostVerdict{.host = host, .health = HostHealth::kFresh, .silence = Duration::zero()};
}

Duration Liveness::suspect_after(const Peer& peer) const {
  return std::min(supervision_.suspect_after, peer.arrivals.unlikely_after().value_or(supervision_.suspect_after));
}

Instant Liveness::declared_at(const Peer& peer) const {
  const Instant alone = std::max(peer.last_heard + health_.stretched(supervision_.lost_after), judges_from_);
  return brake_.hold() ? std::max(alone, brake_.hold()->until) : alone;
}

HostHealth Liveness::judge(const Peer& peer, Instant now) const {
  if (now >= declared_at(peer)) return HostHealth::kSilent;
  const bool doubtful = now - peer.last_heard >= suspect_after(peer);
  return doubtful ? std::max(peer.health, HostHealth::kSuspect) : peer.health;
}

// Overdue is what is suspected by the spec's own limit, or may have begun together with what is declared next.
void Liveness::brake(Instant now) {
  const Duration overdue =
      std::max(supervision_.heartbeat * 2,
               std::min(supervision_.suspect_after, supervision_.lost_after - supervision_.heartbeat * 2));
  std::vector<MassSilence::Silent> silent;
  std::size_t expected = 0;
  std::size_t suspected = 0;
  for (const Peer& peer : peers_) {
    if (peer.health == HostHealth::kUnknown) continue;
    ++expected;
    if (peer.health == HostHealth::kSilent || now - peer.last_heard < overdue) continue;
    ++suspected;
    silent.push_back({.since = peer.last_heard, .held_before = peer.held});
  }
  health_.doubts(suspected, expected);
  (void)brake_.turn(std::move(silent), expected, now);  // whether it began is asked of hold()
  if (!brake_.hold()) return;
  for (Peer& peer : peers_) {
    const bool silent_now = peer.health != HostHealth::kUnknown && now - peer.last_heard >= overdue;
    if (silent_now && brake_.covers(peer.last_heard)) peer.held = true;
  }
}

std::vector<HostVerdict> Liveness::turn(Instant now) {
  if (last_turn_ && now - *last_turn_ > supervision_.heartbeat) {
    const Duration stall = now - *last_turn_;
    for (Peer& peer : peers_) peer.last_heard = std::min(now, peer.last_heard + stall);
    health_.stood_still(now);
    judges_from_ = now + supervision_.heartbeat;
  }
  last_turn_ = now;
  health_.turn(now);
  brake(now);
  std::vector<HostVerdict> changed;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    if (peer.health == HostHealth::kUnknown || peer.health == HostHealth::kSilent) continue;
    const HostHealth next = judge(peer, now);
    if (next == peer.health) continue;
    peer.health = next;
    changed.push_back(
        {.host = HostId(static_cast<std::uint32_t>(i)), .health = next, .silence = now - peer.last_heard});
  }
  return changed;
}

Instant Liveness::next_deadline() const {
  Instant next = Instant::never();
  for (const Peer& peer : peers_) {
    if (peer.health == HostHealth::kFresh) next = std::min(next, peer.last_heard + suspect_after(peer));
    if (peer.health == HostHealth::kSuspect) next = std::min(next, declared_at(peer));
  }
  // Turns come at least once a heartbeat, or a quiet time would pass for a stall.
  if (last_turn_ && next != Instant::never()) next = std::min(next, *last_turn_ + supervision_.heartbeat / 2);
  return next;
}

Instant Liveness::to_ours(HostId host, Instant theirs) const {
  const Peer& peer = peers_[host.value()];
  return peer.same_clock ? theirs : theirs + peer.offset.value_or(Duration::zero());
}

Duration Liveness::uncertainty(HostId host) const {
  const Peer& peer = peers_[host.value()];
  return peer.same_clock ? Duration::zero() : peer.trip / 2;
}

void Liveness::same_clock(HostId host) { peers_[host.value()].same_clock = true; }

void Liveness::round_trip(HostId host, Duration trip) {
  Peer& peer = peers_[host.value()];
  if (trip < Duration::zero()) return;
  peer.trip = peer.trip == Duration::zero() ? trip : std::min(peer.trip, trip);
}

Duration Liveness::round_trip(HostId host) const { return peers_[host.value()].trip; }

Duration Liveness::silence(HostId host, Instant now) const {
  const Peer& peer = peers_[host.value()];
  return peer.health == HostHealth::kUnknown ? Duration::zero() : now - peer.last_heard;
}

HostHealth Liveness::health(HostId host) const { return peers_[host.value()].health; }

}  // namespace monarch
