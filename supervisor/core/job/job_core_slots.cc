// Slots: which host each is on. Until a gang of it has started, a slot whose host is out goes to a spare, or to a cold
// host of the pool, and no budget is spent; with none left the job fails, as soon as it is known of every other host
// whether it starts, so that all are named.

#include <algorithm>

#include "supervisor/core/facts/occupants.h"
#include "supervisor/core/facts/some_of.h"
#include "supervisor/core/job/job_core.h"
#include "supervisor/core/state/gang_life.h"
#include "supervisor/core/state/host_life.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

void JobCore::move_slot(std::uint32_t slot, HostId to, const std::string& rule) {
  const HostId from = state_.slots[slot];
  MONARCH_ASSERT_BECAUSE(!somebody_lives_on(state_, placement_, from),
                         "I3: whose host is taken away gets no lease and is not heard any longer");
  const std::optional<std::uint32_t> done = placement_.slot_on(to);
  MONARCH_ASSERT_BECAUSE(!done || !is_taken(basis_, to), "I18: nobody is moved to where others still run");
  if (done) state_.slots[*done] = from;  // nothing of it will need a host again, but by an operator
  state_.slots[slot] = to;
  placement_.put(state_.slots);
  const bool cold = is_cold(state_.hosts[to.value()].phase);
  JobEvent moved = event_of(EventKind::kHostReplaced, Severity::kWarning,
                            text(pool_[to.value()].name, done ? ", where all has ended," : "", " takes the place of ",
                                 pool_[from.value()].name, cold ? "; its worker is launched now" : "",
                                 rule.empty() ? std::string() : text(" [", rule, "]")));
  moved.host = pool_[to.value()].name;
  moved.details = {{"replaces", pool_[from.value()].name}, {"slot", text(slot)}};
  emit(std::move(moved));
  if (cold) hosts_.launch(to);
  waits_due_ = true;
}

// Of gangs that waited for this slot nothing runs: what is held for them elsewhere is held for a generation that never
// starts.
void JobCore::give_up_reservations(std::uint32_t slot) {
  each_gang_on(state_.slots[slot], [&](MeshId m, GangId g) { give_up_reservation(m, g); });
}

void JobCore::give_up_reservation(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  if (!is_reserving(state.phase)) return;
  to(state, GangPhase::kWaiting);
  crews_.forget({mesh, g});
}

// A connected host that has fewer GPUs or cores than its ranks need is out, before anybody waits for it. What each has
// is known by then, so that all that lack something are named, whatever the others of their gang do.
void JobCore::check_inventory(std::uint32_t slot) {
  const HostId id = state_.slots[slot];
  if (!is_joined(host(id).phase) || !basis_.may_serve(id)) return;
  std::string lacking;
  each_gang_on(id, [&](MeshId m, GangId g) {
    const RankRange here = placement_.range_of(m, g, id);
    if (!lacking.empty()) return;
    const std::string what = resources_.lacking({m, Rank(here.first)}, host(id).inventory);
    if (!what.empty()) lacking = text("mesh ", mesh_spec(m).name, " ", what);
  });
  if (!lacking.empty()) hosts_.lacks(id, lacking);
}

// Every slot on a host that serves, and as many spares as the spec asks for, while the pool has hosts.
void JobCore::fill_slots() {
  if (state_.phase == JobPhase::kNew || basis_.starts_nothing()) return;
  hosts_.recall_lemons(std::nullopt);
  for (std::uint32_t slot = 0; slot < state_.slots.size(); ++slot) {
    if (has_started(basis_, slot)) {
      refill_slot(slot);
      if (state_.phase > JobPhase::kRunning) return;  // nobody was left for it
      continue;
    }
    check_inventory(slot);
    while (!basis_.may_serve(state_.slots[slot])) {
      const auto next = replacement(basis_);
      // Its own host, which ended while an operator wanted nothing there.
      if (is_free_to_launch(basis_, state_.slots[slot]) && !(next && basis_.may_serve(*next))) {
        hosts_.launch(state_.slots[slot]);
        break;
      }
      if (!next) break;  // its gang's other hosts still answer whether they hold what it needs there
      if (host(*next).doubted) break;
      give_up_reservations(slot);
      move_slot(slot, *next);
      check_inventory(slot);
    }
  }
  if (state_.phase == JobPhase::kStarting && !empty_slots(basis_).empty()) return check_slots();
  regrow();
  // Of hosts that are to serve again.
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    if (!is_to_end(basis_, HostId(i))) last_words_.no_haste(HostId(i));
  }
  give_back_idle();
  end_drained();
  if (state_.phase == JobPhase::kStarting || may_reallocate(basis_)) keep_spares();
}

void JobCore::check_slots() {
  bool open =
      std::any_of(state_.hosts.begin(), state_.hosts.end(), [](const HostState& state) { return is_coming(state); });
  open = open || replacement(basis_);  // one that is suspected
  each_gang([&](MeshId m, GangId g) {
    if (!is_reserving(gang(m, g).phase)) return;
    for (const HostId id : placement_.hosts_of(m, g)) {
      open = open || (basis_.may_serve(id) && !basis_.crew(m, g).ports[*placement_.index_in_gang(m, g, id)].held);
    }
  });
  if (!open) end_.fail(blame_hosts(basis_));
}

}  // namespace monarch
