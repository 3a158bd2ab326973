#include "supervisor/core/facts/hosts.h"

#include <algorithm>

#include "supervisor/core/facts/reports.h"
#include "supervisor/core/facts/slots.h"
#include "supervisor/core/spec/given_times.h"
#include "transport/base/limits.h"

namespace monarch {

namespace {

constexpr Duration kLongestReturn = Duration::seconds(600);

// For the output of ranks that have ended on machines of their own to arrive.
constexpr Duration kCopyDeadline = Duration::seconds(60);

}  // namespace

Duration return_wait(const HostState& host, bool at_once) {
  if (at_once && host.losses == 0) return Duration::zero();
  Duration wait = kFirstReturn;
  for (std::uint32_t i = at_once ? 1 : 0; i < host.losses && wait < kLongestReturn; ++i) wait = wait * 2;
  return std::min(wait, kLongestReturn);
}

bool lacks_something(const HostState& host) {
  return host.failure && host.failure->kind == LaunchFailureKind::kResources;
}

bool is_left(const HostState& host) {
  return host.standing != HostStanding::kGood && is_joined(host.phase) && !host.wedged;
}

bool is_in_queue(const CoreFacts& job, HostId id) {
  const HostState& state = job.host(id);
  return job.spec.is_on_request(id) && is_launching(state.phase) && state.name.empty();
}

bool is_free_to_launch(const CoreFacts& job, HostId id) {
  const HostState& state = job.host(id);
  return is_cold(state.phase) && state.standing == HostStanding::kGood &&
         (may_request(job) || !job.spec.is_on_request(id));
}

bool may_take(const CoreFacts& job, HostId id) { return job.may_serve(id) || is_free_to_launch(job, id); }

bool serves_gangs(const CoreFacts& job, HostId id) {
  if (!job.placement.holds_ranks(id)) return false;
  for (std::uint32_t m = 0; m < job.state.meshes.size(); ++m) {
    const GangRange here = job.placement.gangs_on(MeshId(m), id);
    for (std::uint32_t g = here.first; g < here.first + here.count; ++g) {
      if (!has_ended(job.gang(MeshId(m), GangId(g)).phase)) return true;
    }
  }
  return false;
}

bool is_taken(const CoreFacts& job, HostId id) {
  if (!job.placement.holds_ranks(id)) return false;
  if (serves_gangs(job, id)) return true;
  for (std::uint32_t m = 0; m < job.state.meshes.size(); ++m) {
    const GangRange here = job.placement.gangs_on(MeshId(m), id);
    for (std::uint32_t g = here.first; g < here.first + here.count; ++g) {
      for (const RankId& r : job.placement.ranks_of(MeshId(m), GangId(g), id)) {
        if (is_on_its_way(job, r, id) && is_joined(job.host(id).phase)) return true;
      }
    }
  }
  return false;
}

bool lives_alone(const CoreFacts& job, MeshId mesh, GangId g, HostId where) {
  for (std::uint32_t m = 0; m < job.state.meshes.size(); ++m) {
    for (std::uint32_t r = 0; r < job.state.meshes[m].ranks.size(); ++r) {
      const RankId id{MeshId(m), Rank(r)};
      const bool own = id.mesh == mesh && job.mesh(mesh).gang_of(id.rank) == g;
      if (!own && job.placement.host_of(id) == where && lives(job.member(id).stage)) return false;
    }
  }
  return true;
}

// The others do without it: there are as many as the job has slots, and they are connected and lack nothing.
bool is_lemon(const CoreFacts& job, HostId id) {
  const HostState& state = job.host(id);
  const Duration window = job.spec.supervision.reallocate.window;
  const auto young = [&](Instant at) { return job.now - at < window; };
  if (std::count_if(state.lost_at.begin(), state.lost_at.end(), young) < std::ptrdiff_t{kLemonLosses}) return false;
  std::size_t others = 0;
  for (std::uint32_t i = 0; i < job.state.hosts.size(); ++i) {
    const HostState& other = job.host(HostId(i));
    const bool serves = job.may_serve(HostId(i)) && is_joined(other.phase) && !other.doubted && !other.failure;
    others += i != id.value() && serves ? 1U : 0U;
  }
  return others >= job.placement.slots().size();
}

// A virtual host whose last worker is not proven to have ended: the guard, which is on its machine, proves that sooner
// or later, and whoever is launched before meets that worker in its place. Of a machine the proof may never come.
bool is_occupied(const CoreFacts& job, const HostState& state) {
  return state.phase == HostPhase::kLost && job.spec.launch.facts().proves_ends;
}

std::optional<std::uint32_t> standby_of(const CoreFacts& job, MeshId mesh, GangId g) {
  const std::vector<StandbyState>& standbys = job.state.standbys[mesh.value()];
  for (std::uint32_t s = 0; s < standbys.size(); ++s) {
    if (standbys[s].place == g) return s;
  }
  return std::nullopt;
}

bool stands_by_on(const CoreFacts& job, HostId id, std::optional<GangOf> but_for) {
  for (std::uint32_t m = 0; m < job.state.standbys.size(); ++m) {
    const std::vector<StandbyState>& mine = job.state.standbys[m];
    for (std::uint32_t s = 0; s < mine.size(); ++s) {
      const bool own = but_for && but_for->first == MeshId(m) && mine[s].place == but_for->second;
      const Crew& crew = job.crew(standby_mesh(job.spec, MeshId(m)), GangId(s));
      if (!own && is_about(crew) && is_on(crew, id)) return true;
    }
  }
  return false;
}

bool any_lives_beside(const CoreFacts& job) {
  for (std::uint32_t i = 0; i < job.state.hosts.size(); ++i) {
    const bool runs = prepare_stage(job.state, HostId(i)) == PrepareStage::kRunning;
    if (runs && is_joined(job.host(HostId(i)).phase)) return true;
  }
  for (std::uint32_t m = 0; m < job.state.standbys.size(); ++m) {
    const std::vector<Crew>& crews = job.state.crews[standby_mesh(job.spec, MeshId(m)).value()];
    if (std::any_of(crews.begin(), crews.end(), [](const Crew& crew) { return any_lives(crew); })) return true;
  }
  return false;
}

std::string runs_beside(const CoreFacts& job, HostId id, GangOf gang) {
  if (prepare_stage(job.state, id) == PrepareStage::kRunning) return "spares.prepare still runs there";
  return stands_by_on(job, id, gang) ? "a standby gang there has not ended" : "";
}

int order_of_spare(const CoreFacts& job, HostId id) {
  if (stands_by_on(job, id, std::nullopt)) return 3;
  const PrepareStage stage = prepare_stage(job.state, id);
  if (stage == PrepareStage::kRunning) return 1;
  return stage == PrepareStage::kUnprepared ? 2 : 0;
}

std::string_view word_of_spare(const CoreFacts& job, HostId id) {
  switch (prepare_stage(job.state, id)) {
    case PrepareStage::kNone: return "";
    case PrepareStage::kRunning: return "preparing";
    case PrepareStage::kPrepared: return "prepared";
    case PrepareStage::kUnprepared: return "unprepared";
  }
  return "";
}

Duration launch_deadline(const CoreFacts& job) {
  return std::max(job.spec.start_timeout / 2, job.spec.start_timeout - kCallBackDeadline);
}

// How long its worker may take to say hello.
Duration call_back_deadline(const CoreFacts& job) { return std::min(job.spec.start_timeout, kCallBackDeadline); }

Duration drain_patience(const CoreFacts& job) {
  return job.spec.launch.facts().one_machine ? limits::kKillDeadline : kCopyDeadline;
}

bool serves_parked_alone(const CoreFacts& job, HostId id) {
  bool parked = false;
  for (std::uint32_t m = 0; m < job.state.meshes.size(); ++m) {
    const GangRange here = job.placement.gangs_on(MeshId(m), id);
    for (std::uint32_t g = here.first; g < here.first + here.count; ++g) {
      const auto phase = job.gang(MeshId(m), GangId(g)).phase;
      if (!is_parked(phase) && !has_ended(phase)) return false;
      if (is_parked(phase) && awaits_own(job, MeshId(m), GangId(g))) return false;
      parked = parked || is_parked(phase);
    }
  }
  // A gang in the second row that waits there would go with it.
  if (stands_by_on(job, id, std::nullopt)) return false;
  return parked;
}

bool is_to_end(const CoreFacts& job, HostId id) {
  return job.host(id).standing == HostStanding::kDrained ||
         (job.spec.is_on_request(id) && serves_parked_alone(job, id));
}

LaunchFailure lack_of(const CoreFacts& job, HostId id, const std::string& what) {
  return {.kind = LaunchFailureKind::kResources,
          .phase = "reserve",
          .elapsed = job.now - job.host(id).launched_at,
          .message = what,
          .words = {},
          .again = {}};
}

}  // namespace monarch
