#include "tests/sim/takeover/quorum.h"

#include <algorithm>

namespace monarch::sim::takeover {

Quorum::Quorum(Options options)
    : options_(options), peers_(options.agents), slots_(options.ranks), proven_dead_(options.ranks) {}

bool Quorum::is_fresh(Instant now) const {
  const auto fresh = std::count_if(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    const Instant word = wrong(Wrong::kFreshByReceipt) ? peer.heard : peer.echo;
    return peer.promised && now - word <= kFresh;
  });
  return static_cast<std::size_t>(fresh) * 2 > peers_.size();
}

// Q1, Q2 and Q4: who led before may go on until M after the majority had promised.
bool Quorum::may_grant(Instant now) const {
  if (!leads() || (!is_fresh(now) && !wrong(Wrong::kGrantAlone))) return false;
  return wrong(Wrong::kRenewAtOnce) || now >= *promised_at_ + by_any_clock(kFresh);
}

std::vector<Agent> Quorum::not_promised() const {
  std::vector<Agent> others;
  for (Agent a = 0; a < peers_.size(); ++a) {
    if (!peers_[a].promised) others.push_back(a);
  }
  return others;
}

bool Quorum::silent(Agent agent, Instant now) const {
  return !peers_[agent].promised || now - peers_[agent].heard > kLostAfter;
}

std::optional<Ack> Quorum::heard(Agent agent, const Report& report, Instant now) {
  Peer& peer = peers_[agent];
  const bool newer = report.boot > peer.boot || (report.boot == peer.boot && report.seq > peer.seq);
  if (report.promised != options_.epoch || !newer) return std::nullopt;
  peer = {.promised = true,
          .boot = report.boot,
          .seq = report.seq,
          .echo = std::max(peer.echo, report.echo),
          .heard = now,
          .held = report.held,
          .started = report.started};
  const auto promised = std::count_if(peers_.begin(), peers_.end(), [](const Peer& p) { return p.promised; });
  if (!promised_at_ && static_cast<std::size_t>(promised) * 2 > peers_.size()) promised_at_ = now;
  learn(agent, peer);
  Ack ack{.epoch = options_.epoch, .boot = report.boot, .seq = report.seq, .stamp = now, .grants = {}};
  if (!may_grant(now)) return ack;
  for (const Held& held : report.held) {
    Slot& slot = slots_[held.rank];
    if (!slot.known || slot.gen != held.gen || slot.agent != agent) continue;
    slot.granted_at = now;
    ack.grants.push_back({.rank = held.rank, .gen = held.gen});
  }
  return ack;
}

// The highest generation of a rank is the one; what a report lacks has ended, with its boot if not before.
void Quorum::learn(Agent agent, const Peer& peer) {
  for (std::uint32_t r = 0; r < slots_.size(); ++r) {
    Slot& slot = slots_[r];
    const auto held =
        std::find_if(peer.held.begin(), peer.held.end(), [&](const Held& each) { return each.rank == r; });
    const bool here = slot.known && slot.agent == agent;
    if (held == peer.held.end()) {
      if (here && (slot.boot != peer.boot || has_started(peer, r, slot.gen))) gone(slot);
      continue;
    }
    if (here && held->gen == slot.gen) {
      slot.seen = true;
      slot.ours = slot.ours || held->granted_by == options_.epoch;
    } else if (held->gen.epoch < options_.epoch && (!slot.known || held->gen > slot.gen)) {
      if (proven_dead_[r]) continue;  // of an epoch that is over
      slot = {.known = true,
              .ours = false,
              .seen = true,
              .inherited = true,
              .gen = held->gen,
              .agent = agent,
              .boot = peer.boot,
              .granted_at = std::nullopt};
    } else {
      if (here && slot.boot != peer.boot) gone(slot);
      orders_.emplace_back(agent, Kill{.epoch = options_.epoch, .rank = r, .gen = held->gen});
    }
  }
}

bool Quorum::has_started(const Peer& peer, std::uint32_t rank, Gen gen) {
  return std::any_of(peer.started.begin(), peer.started.end(),
                     [&](const Grant& each) { return each.rank == rank && each.gen >= gen; });
}

// Its end proves something only where there was no other beside it.
void Quorum::gone(Slot& slot) {
  const auto rank = static_cast<std::size_t>(&slot - slots_.data());
  if (slot.ours || wrong(Wrong::kTrustAnyDeath)) proven_dead_[rank] = true;
  const std::optional<Instant> granted = slot.granted_at;
  slot = {};
  slot.granted_at = granted;
  slot.inherited = true;
}

// Until when a lease may stand that another supervisor has granted. Q5.
Instant Quorum::inherited_until() const {
  const Duration theirs = wrong(Wrong::kWaitLeaseAlone) ? Duration::zero() : by_any_clock(kFresh);
  return *promised_at_ + theirs + by_any_clock(kLease) + kMargin;
}

Instant Quorum::fence(const Slot& slot) const {
  Instant until;
  if (slot.granted_at) until = *slot.granted_at + by_any_clock(kLease) + kMargin;
  return slot.inherited || !slot.known ? std::max(until, inherited_until()) : until;
}

std::optional<Agent> Quorum::choose(Instant now) const {
  std::optional<Agent> best;
  std::size_t least = 0;
  for (Agent a = 0; a < peers_.size(); ++a) {
    if (silent(a, now)) continue;
    const auto load = static_cast<std::size_t>(
        std::count_if(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.known && s.agent == a; }));
    if (best && least <= load) continue;
    best = a;
    least = load;
  }
  return best;
}

void Quorum::start(std::uint32_t rank, Agent agent) {
  proven_dead_[rank] = false;
  slots_[rank] = {.known = true,
                  .ours = true,
                  .seen = false,
                  .inherited = false,
                  .gen = {.epoch = options_.epoch, .counter = ++last_counter_},
                  .agent = agent,
                  .boot = peers_[agent].boot,
                  .granted_at = std::nullopt};
}

std::vector<Quorum::Order> Quorum::decide(Instant now) {
  std::vector<Order> orders = std::exchange(orders_, {});
  if (!leads() || (!is_fresh(now) && !wrong(Wrong::kGrantAlone))) return orders;
  for (std::uint32_t r = 0; r < slots_.size(); ++r) {
    Slot& slot = slots_[r];
    const bool replaced = (!slot.known || silent(slot.agent, now)) && (proven_dead_[r] || now >= fence(slot));
    if (replaced) {
      if (const auto agent = choose(now)) start(r, *agent);
    }
    if (slot.known && slot.ours && !slot.seen && slot.gen.epoch == options_.epoch) {
      orders.emplace_back(slot.agent, Start{.epoch = options_.epoch, .boot = slot.boot, .rank = r, .gen = slot.gen});
    }
  }
  return orders;
}

}  // namespace monarch::sim::takeover
