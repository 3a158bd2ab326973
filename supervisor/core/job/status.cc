#include "supervisor/core/job/status.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/recovery/restart_budget.h"
#include "supervisor/core/state/first_cause.h"
#include "transport/messages/describe_end.h"

namespace monarch {

namespace {

std::string phase_name(JobPhase phase) {
  switch (phase) {
    case JobPhase::kNew:
    case JobPhase::kStarting: return "starting";
    case JobPhase::kRunning: return "running";
    case JobPhase::kStopping:
    case JobPhase::kDraining:
    case JobPhase::kShuttingDown: return "stopping";
    case JobPhase::kEnded: return "ended";
  }
  return "";
}

std::string phase_name(HostPhase phase) {
  switch (phase) {
    case HostPhase::kCold: return "cold";
    case HostPhase::kLaunching: return "launching";
    case HostPhase::kLaunched: return "joining";
    case HostPhase::kJoined: return "ready";
    case HostPhase::kDestroying: return "ending";
    case HostPhase::kEnded: return "ended";
    case HostPhase::kLost: return "lost";
  }
  return "";
}

std::string stage_name(const RankState& rank, RankStage stage) {
  switch (stage) {
    case RankStage::kPending: return "pending";
    case RankStage::kStarting: return "starting";
    case RankStage::kRunning: return "running";
    case RankStage::kStopping: return "stopping";
    case RankStage::kLost: return "lost";
    case RankStage::kEnded: break;
  }
  if (rank.end.after_our_signal) return "stopped";
  return is_failure(rank.end) ? "failed" : "done";
}

std::string phase_name(GangPhase phase) {
  switch (phase) {
    case GangPhase::kWaiting:
    case GangPhase::kReserving: return "waiting";
    case GangPhase::kStarting: return "starting";
    case GangPhase::kRunning: return "running";
    case GangPhase::kFailing:
    case GangPhase::kStopping: return "stopping";
    case GangPhase::kDone: return "done";
    case GangPhase::kFailed: return "failed";
    case GangPhase::kStopped: return "stopped";
    case GangPhase::kParked: return "parked";
    case GangPhase::kIdle: return "idle";
  }
  return "";
}

std::string phase_name(const Crew& standby, bool given) {
  switch (standby.phase) {
    case CrewPhase::kWaiting:
    case CrewPhase::kOver: return "waiting";
    case CrewPhase::kReserving:
    case CrewPhase::kStarting: return "starting";
    case CrewPhase::kRunning: return given ? "taken" : "ready";
    case CrewPhase::kStopping: return "stopping";
  }
  return "";
}

std::string gang_phase_name(const GangState& gang) {
  if (waits(gang.phase) && recovers(gang)) return "restarting";
  return is_running(gang.phase) && gang.was_ready ? "ready" : phase_name(gang.phase);
}

// Of a rank without a process: the first time, between two generations, or while no host is there for it.
std::string waiting_name(const JobCore& core, const GangState& gang, MeshId mesh, Rank rank) {
  if (is_parked(gang.phase)) return "parked";
  if (is_idle(gang.phase)) return "idle";
  if (!recovers(gang)) return "pending";
  const HostId where = core.placement().host_of({mesh, rank});
  return is_joined(core.facts().host(where).phase) ? "restarting" : "waiting";
}

std::string standing_name(HostStanding standing) {
  switch (standing) {
    case HostStanding::kGood: return "";
    case HostStanding::kQuarantined: return "quarantined";
    case HostStanding::kDrained: return "drained";
  }
  return "";
}

// Until a host that was lost may be launched again.
std::int64_t returns_in(const HostState& host, Instant now) {
  const bool out = is_out(host.phase);
  if (!out || host.cold_at == Instant::never()) return -1;
  return std::max(host.cold_at - now, Duration::zero()).count_milliseconds();
}

// What a host is there for. Once the job has ended, what it was there for.
std::string role_of(const JobCore& core, HostId id) {
  if (core.placement().holds_ranks(id)) return "rank";
  const HostState& host = core.facts().host(id);
  const bool gone = host.phase == HostPhase::kEnded && core.state().phase != JobPhase::kEnded;
  const bool useless = host.failure || host.wedged || host.standing != HostStanding::kGood;
  if (useless || gone || host.phase == HostPhase::kLost) return "none";
  return is_cold(host.phase) ? "pool" : "spare";
}

std::vector<std::pair<std::string, std::int64_t>> time_of(const MeshState& mesh, std::uint32_t ranks, Instant now) {
  std::vector<std::pair<std::string, std::int64_t>> time;
  for (std::size_t i = 0; i < kTimeBins; ++i) {
    const auto bin = static_cast<TimeBin>(i);
    std::int64_t milliseconds = 0;
    for (const GangState& gang : mesh.gangs) {
      milliseconds += spent_in(gang.time, bin, now).count_milliseconds() * static_cast<std::int64_t>(ranks);
    }
    time.emplace_back(name_of(bin), milliseconds);
  }
  return time;
}

// A mesh stands where the least advanced of its gangs stands; one that failed shows in any case.
std::string mesh_phase(const MeshState& mesh) {
  const GangState* shown = &mesh.gangs.front();
  const auto place = [](const GangState& gang) { return std::pair(gang.phase, gang.was_ready); };
  for (const GangState& gang : mesh.gangs) {
    if (gang.phase == GangPhase::kFailed) return phase_name(gang.phase);
    if (place(gang) < place(*shown)) shown = &gang;
  }
  return gang_phase_name(*shown);
}

std::vector<ClaimStatus> claims_of(const JobCore& core, MeshId mesh) {
  std::vector<ClaimStatus> claims;
  for (const SlotClaim& claim : core.state().claims.claims) {
    if (claim.mesh != mesh) continue;
    ClaimStatus shown{.claim = claim.id.value(),
                      .name = claim.what.name,
                      .host = core.hosts()[claim.holder.host.value()].name,
                      .ranks = {}};
    for (const Rank rank : claim.ranks) shown.ranks.push_back(rank.value());
    claims.push_back(std::move(shown));
  }
  return claims;
}

}  // namespace

JobStatus status_of(const JobCore& core, const std::string& job_id, Instant now) {
  const JobState& state = core.state();
  JobStatus status;
  status.job_id = job_id;
  status.phase = phase_name(state.phase);
  status.term = state.term;
  if (state.phase == JobPhase::kEnded) status.verdict = state.verdict;
  if (!state.drill.drill.empty()) {
    status.drill = DrillStatus{.name = state.drill.name,
                               .drill = state.drill.drill,
                               .who = state.drill.who,
                               .since_milliseconds = (now - state.drill.since).count_milliseconds(),
                               .open = open_numbers(state.drill, now),
                               .stopped = is_stopped(state.drill)};
  }
  for (std::size_t i = 0; i < state.hosts.size(); ++i) {
    const HostState& host = state.hosts[i];
    const HostId id(static_cast<std::uint32_t>(i));
    const bool unasked = is_cold(host.phase) && core.spec().is_on_request(id);
    status.hosts.push_back(
        {.name = core.hosts()[i].name,
         .phase = host.wedged                     ? "wedged"
                  : host.failure                  ? "failed"
                  : host.failing                  ? "ending"
                  : unasked                       ? "on request"
                  : is_in_queue(core.facts(), id) ? "queued"
                                                  : phase_name(host.phase),
         .role = role_of(core, id),
         .keeper_pid = host.keeper_pid,
         .standing = standing_name(host.standing),
         .standing_because = host.standing == HostStanding::kGood ? std::string() : host.lost_because,
         .returns_milliseconds = returns_in(host, now),
         .preparation = std::string(word_of_spare(core.facts(), id))});
  }
  for (std::uint32_t m = 0; m < state.meshes.size(); ++m) {
    const MeshSpec& spec = core.spec().meshes[m];
    MeshStatus mesh{.name = spec.name, .phase = mesh_phase(state.meshes[m]), .sidecar = spec.sidecar};
    for (const Dimension& dim : spec.dims) mesh.dims.emplace_back(dim.name, dim.size);
    const RestartPolicy& restart = spec.supervision.restart;
    mesh.restart = {.max = restart.max, .window_milliseconds = restart.window.count_milliseconds()};
    for (std::uint32_t g = 0; g < spec.gangs(); ++g) {
      const GangState& gang = state.meshes[m].gangs[g];
      mesh.gangs.push_back({.phase = gang_phase_name(gang),
                            .generation = core.facts().crew(MeshId(m), GangId(g)).generation.counter,
                            .restarts = gang.restarts,
                            .failures = still_count(gang.failures, restart.window, now)});
    }
    mesh.rank_milliseconds = time_of(state.meshes[m], spec.gang_size(), now);
    for (std::uint32_t r = 0; r < spec.size(); ++r) {
      const RankState& rank = state.meshes[m].ranks[r];
      const CrewMember& member = core.facts().member({MeshId(m), Rank(r)});
      const GangState& gang = state.meshes[m].gangs[spec.gang_of(Rank(r)).value()];
      mesh.ranks.push_back({.rank = r,
                            .phase = member.stage == RankStage::kPending ? waiting_name(core, gang, MeshId(m), Rank(r))
                                                                         : stage_name(rank, member.stage),
                            .host = core.hosts()[place_of(core.facts(), {MeshId(m), Rank(r)}).value()].name,
                            .generation = core.facts().crew_with({MeshId(m), Rank(r)}).generation.counter,
                            .pid = member.pid,
                            .end = rank.reaped ? describe_end(rank.end) : std::string(),
                            .ready = rank.ready && lives(member.stage)});
    }
    for (std::uint32_t g = 0; g < spec.gangs(); ++g) {
      const std::optional<GangCheckpoint>& newest = state.meshes[m].gangs[g].commits.newest;
      if (!newest) continue;
      mesh.committed.push_back({.gang = g, .step = newest->step, .generation = newest->generation.counter});
    }
    for (std::uint32_t s = 0; s < state.standbys[m].size(); ++s) {
      const Crew& standby = core.crews().at({standby_mesh(core.spec(), MeshId(m)), GangId(s)});
      StandbyStatus shown{.phase = phase_name(standby, state.standbys[m][s].place.has_value())};
      for (const HostId id : is_about(standby) ? standby.hosts : std::vector<HostId>())
        shown.hosts.push_back(core.hosts()[id.value()].name);
      mesh.standby.push_back(std::move(shown));
    }
    mesh.claims = claims_of(core, MeshId(m));
    mesh.trusts_job = spec.claims.trusts_job;
    status.meshes.push_back(std::move(mesh));
  }
  return status;
}

}  // namespace monarch
