#include "supervisor/core/machines/slots.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/facts/blame.h"
#include "supervisor/core/facts/hosts.h"
#include "supervisor/core/facts/occupants.h"
#include "supervisor/core/facts/slots.h"
#include "supervisor/core/recovery/recovery.h"
#include "supervisor/core/recovery/restart_budget.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Each mesh counts what all have spent, in its own window.
Duration longest_window(const JobSpec& spec) {
  Duration longest = spec.supervision.reallocate.window;
  for (const MeshSpec& mesh : spec.meshes) longest = std::max(longest, mesh.supervision.reallocate.window);
  return longest;
}

// A host that serves nobody, once what ran there last has been read, or so much later: before the next request, which
// it would wait for.
constexpr Duration kGivenBackWithin = Duration::seconds(30);

}  // namespace

void Slots::move(std::uint32_t slot, HostId to, const std::string& rule) {
  const HostId from = mine_[slot];
  MONARCH_ASSERT_BECAUSE(!somebody_lives_on(basis_.state, basis_.placement, from),
                         "I3: whose host is taken away gets no lease and is not heard any longer");
  const std::optional<std::uint32_t> done = basis_.placement.slot_on(to);
  MONARCH_ASSERT_BECAUSE(!done || !is_taken(basis_, to), "I18: nobody is moved to where others still run");
  if (done) mine_[*done] = from;  // nothing of it will need a host again, but by an operator
  mine_[slot] = to;
  placement_.put(mine_);
  const bool cold = is_cold(basis_.host(to).phase);
  JobEvent moved = basis_.event(
      EventKind::kHostReplaced, Severity::kWarning,
      text(basis_.name_of(to), done ? ", where all has ended," : "", " takes the place of ", basis_.name_of(from),
           cold ? "; its worker is launched now" : "", rule.empty() ? std::string() : text(" [", rule, "]")));
  moved.host = basis_.name_of(to);
  moved.details = {{"replaces", basis_.name_of(from)}, {"slot", text(slot)}};
  basis_.emit(std::move(moved));
  if (cold) hosts_.launch(to);
  basis_.waits_due = true;
}

// Of gangs that waited for this slot nothing runs: what is held for them elsewhere is held for a generation that never
// starts.
void Slots::give_up_reservations(std::uint32_t slot) {
  basis_.each_gang_on(mine_[slot], [&](MeshId m, GangId g) { gangs_.give_up_reservation(m, g); });
}

// A connected host that has fewer GPUs or cores than its ranks need is out, before anybody waits for it. What each has
// is known by then, so that all that lack something are named, whatever the others of their gang do.
void Slots::check_inventory(std::uint32_t slot) {
  const HostId id = mine_[slot];
  if (!is_joined(basis_.host(id).phase) || !basis_.may_serve(id)) return;
  std::string lacking;
  basis_.each_gang_on(id, [&](MeshId m, GangId g) {
    const RankRange here = basis_.placement.range_of(m, g, id);
    if (!lacking.empty()) return;
    const std::string what = basis_.resources.lacking({m, Rank(here.first)}, basis_.host(id).inventory);
    if (!what.empty()) lacking = text("mesh ", basis_.mesh(m).name, " ", what);
  });
  if (!lacking.empty()) hosts_.lacks(id, lacking);
}

void Slots::fill() {
  if (basis_.state.phase == JobPhase::kNew || basis_.starts_nothing()) return;
  hosts_.recall_lemons(std::nullopt);
  for (std::uint32_t slot = 0; slot < mine_.size(); ++slot) {
    if (has_started(basis_, slot)) {
      refill(slot);
      if (basis_.state.phase > JobPhase::kRunning) return;  // nobody was left for it
      continue;
    }
    check_inventory(slot);
    while (!basis_.may_serve(mine_[slot])) {
      const auto next = replacement(basis_);
      // Its own host, which ended while an operator wanted nothing there.
      if (is_free_to_launch(basis_, mine_[slot]) && !(next && basis_.may_serve(*next))) {
        hosts_.launch(mine_[slot]);
        break;
      }
      if (!next) break;  // its gang's other hosts still answer whether they hold what it needs there
      if (basis_.host(*next).doubted) break;
      give_up_reservations(slot);
      move(slot, *next);
      check_inventory(slot);
    }
  }
  if (basis_.state.phase == JobPhase::kStarting && !empty_slots(basis_).empty()) return check();
  regrow();
  tend_idle();
  if (basis_.state.phase == JobPhase::kStarting || may_reallocate(basis_)) keep_spares();
}

void Slots::check() {
  bool open = std::any_of(basis_.state.hosts.begin(), basis_.state.hosts.end(),
                          [](const HostState& state) { return is_coming(state); });
  open = open || replacement(basis_);  // one that is suspected
  basis_.each_gang([&](MeshId m, GangId g) {
    if (!is_reserving(basis_.gang(m, g).phase)) return;
    for (const HostId id : basis_.placement.hosts_of(m, g)) {
      open = open || (basis_.may_serve(id) && !basis_.crew(m, g).ports[*basis_.placement.index_in_gang(m, g, id)].held);
    }
  });
  if (!open) end_.fail(blame_hosts(basis_));
}

// A slot of gangs that have started before, and whose host is out: once nothing lives there, another host takes it.
void Slots::refill(std::uint32_t slot) {
  const HostId at = mine_[slot];
  std::vector<std::pair<MeshId, GangId>> waiting;
  basis_.each_gang_on(at, [&](MeshId m, GangId g) {
    if (waits(basis_.gang(m, g).phase)) waiting.emplace_back(m, g);
  });
  if (waiting.empty()) return;
  if (!somebody_lives_on(basis_.state, basis_.placement, at))
    check_inventory(slot);  // it may have been launched for this slot, and told only now what it has
  if (basis_.may_serve(at)) return;
  give_up_reservations(slot);  // or the answer that is on its way would start them there
  // Each by its own policy, and each gang that is parked is one less that may be. One move serves all that wait for it.
  std::optional<std::pair<MeshId, Recovery>> move;
  for (const auto& [mesh, g] : waiting) {
    Recovery next = recover(basis_.mesh(mesh).supervision, facts_of_lost_host(basis_, mesh, {at}));
    if (next.remedy == Remedy::kPark || next.remedy == Remedy::kFail) gangs_.give_up(mesh, g, at, next);
    if (next.remedy == Remedy::kReplace && !move) move.emplace(mesh, std::move(next));
    if (basis_.state.phase > JobPhase::kRunning) return;
  }
  if (!move) return;
  const std::optional<HostId> other = replacement(basis_);
  const bool itself =
      is_free_to_launch(basis_, at) && (!other || !basis_.may_serve(*other) || basis_.host(*other).doubted);
  if (!itself && basis_.host(*other).doubted) return;
  if (somebody_lives_on(basis_.state, basis_.placement, at)) {
    // Who goes on where nothing new may start is not stopped for it: the slot moves once all of them have ended.
    if (!is_left(basis_.host(at))) evict(slot);
    return;
  }
  forget_older(moves_, longest_window(basis_.spec), basis_.now);
  moves_.push_back(basis_.now);
  const std::string& rule = move->second.rule;
  itself ? hosts_.launch_again(at, rule) : this->move(slot, *other, rule);
  check_inventory(slot);
}

// Who lives on a host that is left goes with the others; the slot is on another host once they have ended.
void Slots::evict(std::uint32_t slot) {
  const HostId at = mine_[slot];
  basis_.each_gang_on(at, [&](MeshId m, GangId g) {
    if (runs(basis_.gang(m, g).phase)) gangs_.fail_by(m, g, at);
  });
}

bool Slots::may_give(MeshId m, GangId g) {
  const std::vector<HostId> before = basis_.placement.hosts_of(m, g);
  const bool lost = std::any_of(before.begin(), before.end(), [this](HostId id) { return !basis_.may_serve(id); });
  const ReallocatePolicy& policy = basis_.mesh(m).supervision.reallocate;
  if (lost) {
    if (policy.max && still_count(moves_, policy.window, basis_.now) >= *policy.max) return false;
    forget_older(moves_, policy.window, basis_.now);
    moves_.push_back(basis_.now);
  }
  return true;
}

void Slots::give(MeshId m, GangId g, const std::vector<HostId>& to, const std::string& rule) {
  const std::vector<HostId> before = basis_.placement.hosts_of(m, g);
  for (std::size_t i = 0; i < before.size(); ++i) move(*basis_.placement.slot_on(before[i]), to[i], rule);
}

// For each of its slots that has none, if there are any: are all of them connected? Who lives on a host keeps it.
bool Slots::find_hosts(MeshId mesh, GangId g) {
  for (const HostId id : basis_.placement.hosts_of(mesh, g)) {
    if (lives_alone(basis_, mesh, g, id)) check_inventory(*basis_.placement.slot_on(id));
    if (basis_.may_serve(id)) continue;
    if (somebody_lives_on(basis_.state, basis_.placement, id)) return false;
    const std::optional<HostId> other = replacement(basis_);
    const bool sure = other && basis_.may_serve(*other) && !basis_.host(*other).doubted;
    if (is_free_to_launch(basis_, id) && !sure) {
      hosts_.launch_again(id, "shrink: regrow");
    } else if (other && !basis_.host(*other).doubted) {
      move(*basis_.placement.slot_on(id), *other, "shrink: regrow");
    }
  }
  const std::vector<HostId> hosts = basis_.placement.hosts_of(mesh, g);
  return std::all_of(hosts.begin(), hosts.end(),
                     [this](HostId id) { return basis_.may_serve(id) && is_joined(basis_.host(id).phase); });
}

void Slots::regrow() {
  basis_.each_gang([this](MeshId m, GangId g) {
    const auto& shrink = basis_.mesh(m).supervision.shrink;
    if (!is_parked(basis_.gang(m, g).phase) || !shrink || !shrink->regrow) return;
    if (!find_hosts(m, g)) return;
    gangs_.come_back(m, g);
    requests_.satisfied();
  });
}

void Slots::tend_idle() {
  for (std::uint32_t i = 0; i < basis_.state.hosts.size(); ++i) {
    if (!is_to_end(basis_, HostId(i))) last_words_.no_haste(HostId(i));  // it is to serve again
  }
  give_back_idle();
  end_drained();
}

// Who was asked for one more host has just refused it: those on request that serve nothing but gangs which wait for
// that one are given back, and asked for again with it.
void Slots::give_back_idle() {
  if (basis_.state.phase != JobPhase::kRunning || may_request(basis_)) return;
  if (basis_.spec.checkpoints.peer > 0) return;  // the only copies of what was committed last may be there
  for (std::uint32_t i = 0; i < basis_.state.hosts.size(); ++i) {
    const HostId id(i);
    const bool serves =
        basis_.spec.is_on_request(id) && basis_.may_serve(id) && is_joined(basis_.host(HostId(i)).phase);
    if (!serves || !serves_parked_alone(basis_, id) || somebody_lives_on(basis_.state, basis_.placement, id)) continue;
    if (last_words_.awaited(id, kGivenBackWithin)) continue;
    JobEvent released = basis_.event(EventKind::kHostReleased, Severity::kInfo,
                                     text(basis_.hosts[i].name,
                                          " is given back: the gang that it is for is parked, and no other "
                                          "host is granted now"));
    released.host = basis_.hosts[i].name;
    basis_.emit(std::move(released));
    hosts_.destroy(id);
  }
}

// Their workers, once nothing that may run yet is on them, and what ran there last has been read.
void Slots::end_drained() {
  for (std::uint32_t i = 0; i < basis_.state.hosts.size(); ++i) {
    const HostId id(i);
    const HostState& state = basis_.host(HostId(i));
    if (state.standing != HostStanding::kDrained || is_destroying(state.phase)) continue;
    if (serves_gangs(basis_, id) || last_words_.awaited(id, drain_patience(basis_))) continue;
    hosts_.destroy(id);
  }
}

void Slots::keep_spares() {
  std::uint32_t spares = 0;
  for (std::uint32_t i = 0; i < basis_.state.hosts.size(); ++i) {
    spares += basis_.may_serve(HostId(i)) && !basis_.placement.holds_ranks(HostId(i)) ? 1U : 0U;
  }
  for (std::uint32_t i = 0; i < basis_.state.hosts.size() && spares < basis_.spec.spares(); ++i) {
    if (!is_free_to_launch(basis_, HostId(i)) || basis_.placement.holds_ranks(HostId(i))) continue;
    hosts_.launch(HostId(i));
    ++spares;
  }
}

}  // namespace monarch
