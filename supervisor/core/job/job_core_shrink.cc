// Shrink: a gang without a host is parked where the spec allows it, and the job goes on with the others; it returns
// when each of its slots has a connected host again. Sizes and numbers never change.

#include <algorithm>

#include "supervisor/core/facts/occupants.h"
#include "supervisor/core/facts/some_of.h"
#include "supervisor/core/job/job_core.h"
#include "supervisor/core/state/gang_life.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// A host that serves nobody, once what ran there last has been read, or so much later: before the next request, which
// it would wait for.
constexpr Duration kGivenBackWithin = Duration::seconds(30);

}  // namespace

void JobCore::park(MeshId mesh, GangId g, HostId where, const std::string& rule) {
  GangState& state = gang(mesh, g);
  to(state, GangPhase::kParked);
  state.failure.reset();
  crews_.forget({mesh, g});
  waits_due_ = true;
  basis_.say_of_gang(mesh, g, EventKind::kGangParked, Severity::kWarning,
                     text("is parked, the others go on: ", pool_[where.value()].name, " is out [", rule, "]"));
}

// For each of its slots that has none, if there are any: are all of them connected? Who lives on a host keeps it.
bool JobCore::find_hosts(MeshId mesh, GangId g) {
  for (const HostId id : placement_.hosts_of(mesh, g)) {
    if (lives_alone(basis_, mesh, g, id)) check_inventory(*placement_.slot_on(id));
    if (basis_.may_serve(id)) continue;
    if (somebody_lives_on(state_, placement_, id)) return false;
    const std::optional<HostId> other = replacement(basis_);
    const bool sure = other && basis_.may_serve(*other) && !host(*other).doubted;
    if (is_free_to_launch(basis_, id) && !sure) {
      hosts_.launch_again(id, "shrink: regrow");
    } else if (other && !host(*other).doubted) {
      move_slot(*placement_.slot_on(id), *other, "shrink: regrow");
    }
  }
  const std::vector<HostId> hosts = placement_.hosts_of(mesh, g);
  return std::all_of(hosts.begin(), hosts.end(),
                     [this](HostId id) { return basis_.may_serve(id) && is_joined(host(id).phase); });
}

void JobCore::regrow() {
  each_gang([this](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    const auto& shrink = mesh_spec(m).supervision.shrink;
    if (!is_parked(state.phase) || !shrink || !shrink->regrow) return;
    if (!find_hosts(m, g)) return;
    Verdict verdict;
    verdict.cause.kind = CauseKind::kRequest;
    verdict.cause.mesh = mesh_spec(m).name;
    verdict.cause.summary = "it was parked, and its hosts are there again";
    verdict.reason = verdict.cause.summary;
    state.failure = std::move(verdict);
    state.not_before = now_;
    to(state, GangPhase::kWaiting);
    waits_due_ = true;
    requests_.satisfied();
    basis_.say_of_gang(m, g, EventKind::kGangReturning, Severity::kInfo,
                       "returns: a host is connected for each of its slots");
  });
}

// Who was asked for one more host has just refused it: those on request that serve nothing but gangs which wait for
// that one are given back, and asked for again with it.
void JobCore::give_back_idle() {
  if (state_.phase != JobPhase::kRunning || may_request(basis_)) return;
  if (spec_.checkpoints.peer > 0) return;  // the only copies of what was committed last may be there
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    const HostId id(i);
    const bool serves = spec_.is_on_request(id) && basis_.may_serve(id) && is_joined(state_.hosts[i].phase);
    if (!serves || !serves_parked_alone(basis_, id) || somebody_lives_on(state_, placement_, id)) continue;
    if (last_words_.awaited(id, kGivenBackWithin)) continue;
    JobEvent released = event_of(EventKind::kHostReleased, Severity::kInfo,
                                 text(pool_[i].name,
                                      " is given back: the gang that it is for is parked, and no other "
                                      "host is granted now"));
    released.host = pool_[i].name;
    emit(std::move(released));
    hosts_.destroy(id);
  }
}

}  // namespace monarch
