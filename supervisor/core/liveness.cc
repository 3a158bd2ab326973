#include "supervisor/core/liveness.h"

#include <algorithm>

#include "transport/base/assert.h"

namespace monarch {

Liveness::Liveness(const Supervision& supervision, std::size_t hosts) : supervision_(supervision), peers_(hosts) {}

void Liveness::expect(HostId host, Instant now) {
  Peer& peer = peers_[host.value()];
  peer.health = HostHealth::kFresh;
  peer.last_heard = now;
  if (!last_turn_) last_turn_ = now;  // a stall before the first turn is one, too
}

void Liveness::stop_expecting(HostId host) { peers_[host.value()].health = HostHealth::kUnknown; }

std::optional<HostVerdict> Liveness::heard(HostId host, const Beat& beat, Instant now) {
  Peer& peer = peers_[host.value()];
  const Duration offset = now - beat.sent_at;
  if (!peer.offset || offset < *peer.offset) peer.offset = offset;
  // A daemon whose main loop hangs still beats; its beats say so, and count as silence.
  if (peer.health == HostHealth::kUnknown || beat.loop_age > supervision_.suspect_after) return std::nullopt;
  peer.last_heard = now;
  if (peer.health == HostHealth::kFresh) return std::nullopt;
  peer.health = HostHealth::kFresh;
  return HostVerdict{.host = host, .health = HostHealth::kFresh, .silence = Duration::zero()};
}

std::vector<HostVerdict> Liveness::turn(Instant now) {
  if (last_turn_ && now - *last_turn_ > supervision_.heartbeat) {
    const Duration stall = now - *last_turn_;
    for (Peer& peer : peers_) peer.last_heard = std::min(now, peer.last_heard + stall);
  }
  last_turn_ = now;
  std::vector<HostVerdict> changed;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    if (peer.health == HostHealth::kUnknown) continue;
    const Duration silence = now - peer.last_heard;
    HostHealth next = peer.health;
    if (silence >= supervision_.lost_after) {
      next = HostHealth::kSilent;
    } else if (silence >= supervision_.suspect_after) {
      next = std::max(peer.health, HostHealth::kSuspect);
    }
    if (next == peer.health) continue;
    peer.health = next;
    changed.push_back({.host = HostId(static_cast<std::uint32_t>(i)), .health = next, .silence = silence});
  }
  return changed;
}

Instant Liveness::next_deadline() const {
  Instant next = Instant::never();
  for (const Peer& peer : peers_) {
    if (peer.health == HostHealth::kFresh) next = std::min(next, peer.last_heard + supervision_.suspect_after);
    if (peer.health == HostHealth::kSuspect) next = std::min(next, peer.last_heard + supervision_.lost_after);
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
