#include "supervisor/core/facts/slots.h"

#include <algorithm>

#include "supervisor/core/facts/gangs.h"
#include "supervisor/core/facts/hosts.h"
#include "supervisor/core/facts/occupants.h"
#include "supervisor/core/recovery/restart_budget.h"

namespace monarch {

namespace {

// Its worker did not start while the job ran, and what may be left of it is being ended: then let_return() has it tried
// again.
bool is_tried_again(const HostState& host) {
  return is_destroying(host.phase) && host.failure && !lacks_something(host) && !host.wedged &&
         host.standing == HostStanding::kGood;
}

}  // namespace

bool has_started(const CoreFacts& job, std::uint32_t slot) {
  const HostId where = job.state.slots[slot];
  for (std::uint32_t m = 0; m < job.state.meshes.size(); ++m) {
    const GangRange here = job.placement.gangs_on(MeshId(m), where);
    for (std::uint32_t g = here.first; g < here.first + here.count; ++g) {
      const GangState& gang = job.gang(MeshId(m), GangId(g));
      if (is_idle(gang.phase)) continue;
      if (!waits(gang.phase) || recovers(gang)) return true;
    }
  }
  return false;
}

// A connected spare before one that is on its way, and that before a cold host; of connected ones, those that are
// prepared first, and those where a standby gang waits last. Of two alike, a spare before a host on which all has
// ended. One that is suspected comes after all: whoever would get it waits, for it is heard again or lost soon.
std::optional<HostId> replacement(const CoreFacts& job) {
  std::optional<HostId> best;
  const auto place = [&job](HostId id) {
    const HostState& state = job.host(id);
    switch (state.phase) {
      case HostPhase::kJoined: return state.doubted ? 7 : order_of_spare(job, id);
      case HostPhase::kLaunched: return 4;
      case HostPhase::kLaunching: return 5;
      case HostPhase::kCold: return 6;
      case HostPhase::kDestroying: return 5;  // it is launched again
      case HostPhase::kEnded:
      case HostPhase::kLost: break;
    }
    return 8;
  };
  const auto order = [&](HostId id) { return std::pair(place(id), job.placement.holds_ranks(id)); };
  for (std::uint32_t i = 0; i < job.state.hosts.size(); ++i) {
    const HostId id(i);
    if (!may_take(job, id) || is_taken(job, id)) continue;
    if (!best || order(id) < order(*best)) best = id;
  }
  return best;
}

std::vector<std::uint32_t> empty_slots(const CoreFacts& job) {
  std::vector<std::uint32_t> empty;
  for (std::uint32_t slot = 0; slot < job.state.slots.size(); ++slot) {
    if (!job.may_serve(job.state.slots[slot]) && !has_started(job, slot)) empty.push_back(slot);
  }
  return empty;
}

std::vector<Duration> returns(const CoreFacts& job, const std::vector<HostId>& own) {
  std::vector<Duration> waits;
  for (std::uint32_t i = 0; i < job.state.hosts.size(); ++i) {
    const HostState& state = job.host(HostId(i));
    const bool its_own = std::find(own.begin(), own.end(), HostId(i)) != own.end();
    if (is_taken(job, HostId(i)) && !its_own) continue;
    if (job.spec.is_on_request(HostId(i))) continue;  // who knows when anybody is granted?
    const bool out = is_out(state.phase);
    if (out && state.cold_at != Instant::never()) waits.push_back(std::max(state.cold_at - job.now, Duration::zero()));
    if (job.state.phase == JobPhase::kRunning && is_tried_again(state)) waits.push_back(return_wait(state, false));
  }
  std::sort(waits.begin(), waits.end());
  return waits;
}

std::uint32_t hosts_left(const CoreFacts& job, const std::vector<HostId>& own) {
  std::uint32_t left = 0;
  for (std::uint32_t i = 0; i < job.state.hosts.size(); ++i) {
    const bool held = is_taken(job, HostId(i));
    const bool its_own = std::find(own.begin(), own.end(), HostId(i)) != own.end();
    left += (!held && may_take(job, HostId(i))) || (its_own && is_free_to_launch(job, HostId(i))) ? 1U : 0U;
  }
  return left;
}

bool may_reallocate(const CoreFacts& job) {
  return std::any_of(job.spec.meshes.begin(), job.spec.meshes.end(), [&job](const MeshSpec& mesh) {
    const ReallocatePolicy& policy = mesh.supervision.reallocate;
    return !policy.max || still_count(job.state.reallocations, policy.window, job.now) < *policy.max;
  });
}

FailureFacts facts_of_lost_host(const CoreFacts& job, MeshId mesh, const std::vector<HostId>& hosts) {
  const Supervision& policy = job.mesh(mesh).supervision;
  const auto is_out = [&job](HostId id) { return !job.may_serve(id); };
  const std::vector<Duration> due = returns(job, hosts);
  FailureFacts facts{.kind = FailureKind::kHostLost,
                     .slots_out = static_cast<std::uint32_t>(std::count_if(hosts.begin(), hosts.end(), is_out)),
                     .hosts_left = hosts_left(job, hosts),
                     .reallocations = still_count(job.state.reallocations, policy.reallocate.window, job.now),
                     .hosts_due = static_cast<std::uint32_t>(due.size()),
                     .may_park = may_park(job, mesh)};
  if (facts.slots_out > facts.hosts_left && facts.slots_out - facts.hosts_left <= due.size()) {
    facts.due_in = Duration::milliseconds(due[facts.slots_out - facts.hosts_left - 1].count_milliseconds());
  }
  const auto first = std::find_if(hosts.begin(), hosts.end(), is_out);
  if (first == hosts.end()) return facts;
  const HostState& host = job.host(*first);
  if (is_left(host)) facts.out = "host drained";
  if (host.standing == HostStanding::kQuarantined) facts.out = "host quarantined";
  return facts;
}

bool may_leave(const CoreFacts& job, std::uint32_t slot, MeshId mesh) {
  const HostId at = job.state.slots[slot];
  if (somebody_lives_on(job.state, job.placement, at)) return false;
  FailureFacts facts = facts_of_lost_host(job, mesh, {});
  facts.slots_out = 1;
  return recover(job.mesh(mesh).supervision, facts).remedy == Remedy::kReplace;
}

bool awaits_own(const CoreFacts& job, MeshId mesh, GangId g) {
  const FailureFacts facts = facts_of_lost_host(job, mesh, job.placement.hosts_of(mesh, g));
  return facts.hosts_left + facts.hosts_due >= facts.slots_out;
}

Duration lease_length(const CoreFacts& job) {
  if (may_reallocate(job) && hosts_left(job, {}) > 0) return job.spec.supervision.lease;
  return std::max(job.spec.supervision.lease, job.spec.supervision.orphan_ttl);
}

}  // namespace monarch
