// Shrink: a gang without a host is parked where the spec allows it, and the job goes on with the others; it returns
// when each of its slots has a connected host again. Sizes and numbers never change.

#include <algorithm>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/job/occupants.h"
#include "supervisor/core/job/some_of.h"
#include "supervisor/core/state/gang_life.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// A host that serves nobody, once what ran there last has been read, or so much later: before the next request, which
// it would wait for.
constexpr Duration kGivenBackWithin = Duration::seconds(30);

}  // namespace

// Do enough gangs go on without one more?
bool JobCore::may_park(MeshId mesh) const {
  const auto& shrink = mesh_spec(mesh).supervision.shrink;
  if (!shrink) return false;
  const auto& gangs = state_.meshes[mesh.value()].gangs;
  const auto parked =
      std::count_if(gangs.begin(), gangs.end(), [](const GangState& gang) { return gang.phase == GangPhase::kParked; });
  return static_cast<std::int64_t>(gangs.size()) - parked - 1 >= static_cast<std::int64_t>(shrink->min);
}

void JobCore::park(MeshId mesh, GangId g, HostId where, const std::string& rule) {
  GangState& state = gang(mesh, g);
  to(state, GangPhase::kParked);
  state.failure.reset();
  crews_.forget({mesh, g});
  waits_due_ = true;
  say_of_gang(mesh, g, EventKind::kGangParked, Severity::kWarning,
              text("is parked, the others go on: ", hosts_[where.value()].name, " is out [", rule, "]"));
}

// For each of its slots that has none, if there are any: are all of them connected? Who lives on a host keeps it.
bool JobCore::find_hosts(MeshId mesh, GangId g) {
  for (const HostId id : placement_.hosts_of(mesh, g)) {
    if (lives_alone(mesh, g, id)) check_inventory(*placement_.slot_on(id));
    if (may_serve(id)) continue;
    if (somebody_lives_on(state_, placement_, id)) return false;
    const std::optional<HostId> other = replacement();
    const bool sure = other && may_serve(*other) && !host(*other).doubted;
    if (is_free_to_launch(id) && !sure) {
      launch_again(id, "shrink: regrow");
    } else if (other && !host(*other).doubted) {
      move_slot(*placement_.slot_on(id), *other, "shrink: regrow");
    }
  }
  const std::vector<HostId> hosts = placement_.hosts_of(mesh, g);
  return std::all_of(hosts.begin(), hosts.end(),
                     [this](HostId id) { return may_serve(id) && host(id).phase == HostPhase::kJoined; });
}

void JobCore::regrow() {
  each_gang([this](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    const auto& shrink = mesh_spec(m).supervision.shrink;
    if (state.phase != GangPhase::kParked || !shrink || !shrink->regrow) return;
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
    if (!has_parked()) state_.refusals = 0;
    say_of_gang(m, g, EventKind::kGangReturning, Severity::kInfo, "returns: a host is connected for each of its slots");
  });
}

// Who was asked for one more host has just refused it: those on request that serve nothing but gangs which wait for
// that one are given back, and asked for again with it.
void JobCore::give_back_idle() {
  if (state_.phase != JobPhase::kRunning || may_request()) return;
  if (spec_.checkpoints.peer > 0) return;  // the only copies of what was committed last may be there
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    const HostId id(i);
    const bool serves = spec_.is_on_request(id) && may_serve(id) && state_.hosts[i].phase == HostPhase::kJoined;
    if (!serves || !serves_parked_alone(id) || somebody_lives_on(state_, placement_, id)) continue;
    if (awaits_last_words(id, kGivenBackWithin)) continue;
    JobEvent released = event_of(EventKind::kHostReleased, Severity::kInfo,
                                 text(hosts_[i].name,
                                      " is given back: the gang that it is for is parked, and no other "
                                      "host is granted now"));
    released.host = hosts_[i].name;
    emit(std::move(released));
    destroy(id);
  }
}

// Hosts that nobody has to be asked for are there, or due back, for all that it lacks.
bool JobCore::awaits_own(MeshId mesh, GangId g) const {
  const FailureFacts facts = facts_of_lost_host(mesh, placement_.hosts_of(mesh, g));
  return facts.hosts_left + facts.hosts_due >= facts.slots_out;
}

bool JobCore::serves_parked_alone(HostId id) const {
  bool parked = false;
  for (std::uint32_t m = 0; m < state_.meshes.size(); ++m) {
    const GangRange here = placement_.gangs_on(MeshId(m), id);
    for (std::uint32_t g = here.first; g < here.first + here.count; ++g) {
      const GangPhase phase = state_.meshes[m].gangs[g].phase;
      if (phase != GangPhase::kParked && !has_ended(phase)) return false;
      if (phase == GangPhase::kParked && awaits_own(MeshId(m), GangId(g))) return false;
      parked = parked || phase == GangPhase::kParked;
    }
  }
  // A gang in the second row that waits there would go with it.
  if (standbys_.is_on(id, std::nullopt)) return false;
  return parked;
}

// "; parked: trainer gang 0 and 3 more"
std::string JobCore::parked_text() const {
  std::vector<std::string> parked;
  for (std::size_t m = 0; m < state_.meshes.size(); ++m) {
    for (std::size_t g = 0; g < state_.meshes[m].gangs.size(); ++g) {
      if (state_.meshes[m].gangs[g].phase != GangPhase::kParked) continue;
      parked.push_back(text(spec_.meshes[m].name, " gang ", g));
    }
  }
  return parked.empty() ? "" : text("; parked: ", some_of(std::move(parked)));
}

}  // namespace monarch
