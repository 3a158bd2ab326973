#include "supervisor/core/facts/gangs.h"

#include <algorithm>

#include "supervisor/core/facts/hosts.h"
#include "supervisor/core/facts/reports.h"
#include "supervisor/core/facts/some_of.h"
#include "supervisor/core/state/first_cause.h"
#include "transport/base/assert.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::string not_ready_text(const MeshSpec& mesh) {
  switch (mesh.ready.kind) {
    case ReadyKind::kExec: return {};
    case ReadyKind::kNotify: return " (has not said READY=1)";
    case ReadyKind::kTcp: return text(" (port ", mesh.ports[mesh.ready.port].name, " accepts no connection)");
  }
  return {};
}

std::size_t ranks_of(const JobSpec& spec) {
  std::size_t ranks = 0;
  for (const MeshSpec& mesh : spec.meshes) ranks += mesh.size();
  return ranks;
}

}  // namespace

bool is_ready(const CoreFacts& job, MeshId mesh) {
  if (job.mesh(mesh).idle) return true;
  const MeshState& state = job.state.meshes[mesh.value()];
  return std::all_of(state.gangs.begin(), state.gangs.end(), [&](const GangState& gang) {
    const bool over = gang.phase == GangPhase::kFailed || gang.phase == GangPhase::kDone;
    if (gang.was_ready || (over && gang.ever_ready) || is_parked(gang.phase)) return true;
    if (!job.mesh(mesh).sidecar) return gang.phase == GangPhase::kDone;
    return gang.ever_ready && ended_unready(job, gang).has_value();
  });
}

std::optional<std::size_t> ended_unready(const CoreFacts& job, const GangState& state) {
  if (!runs(state.phase)) return std::nullopt;
  for (std::size_t i = 0; i < state.ends.size(); ++i) {
    if (!job.rank(state.ends[i].process.rank).ready && !is_failure(state.ends[i].end)) return i;
  }
  return std::nullopt;
}

bool starts_again(const CoreFacts& job, RankId id) {
  const GangState& of = job.gang(id.mesh, job.mesh(id.mesh).gang_of(id.rank));
  return recovers(of) && (is_failing(of.phase) || waits(of.phase));
}

std::string unready_text(const CoreFacts& job, RankId id) {
  const RankStage stage = job.member(id).stage;
  const bool started = stage != RankStage::kPending && stage != RankStage::kStarting;
  std::string why = started ? not_ready_text(job.mesh(id.mesh)) : std::string();
  if (starts_again(job, id)) why = " (its gang has failed, and is to start again)";
  return text(job.mesh(id.mesh).name, "/", id.rank.value(), "@", job.hosts[job.placement.host_of(id).value()].name,
              why);
}

bool fence_done(const CoreFacts& job, MeshId mesh, GangId g) {
  const GangState& state = job.gang(mesh, g);
  return state.not_before <= job.now && std::all_of(state.fenced_by.begin(), state.fenced_by.end(),
                                                    [&job](HostId id) { return job.host(id).fence <= job.now; });
}

bool lacks_host(const CoreFacts& job, MeshId mesh, GangId g) {
  const std::vector<HostId> hosts = job.placement.hosts_of(mesh, g);
  return std::any_of(hosts.begin(), hosts.end(), [&job](HostId id) { return !is_joined(job.host(id).phase); });
}

bool all_ended_well(const CoreFacts& job, MeshId mesh, GangId g) {
  const std::vector<RankId> ranks = job.placement.ranks_of(mesh, g);
  return std::all_of(ranks.begin(), ranks.end(), [&job](const RankId& id) {
    return job.member(id).stage == RankStage::kEnded && job.rank(id).reaped && !is_failure(job.rank(id).end);
  });
}

std::string since_failure(const CoreFacts& job, const GangState& state) {
  if (!recovers(state)) return "";
  return text(" again, ", to_text(Duration::milliseconds((job.now - state.failed_at).count_milliseconds())),
              state.failure->cause.kind == CauseKind::kRequest ? " after it was stopped" : " after it failed");
}

bool may_park(const CoreFacts& job, MeshId mesh) {
  const auto& shrink = job.mesh(mesh).supervision.shrink;
  if (!shrink) return false;
  const auto& gangs = job.state.meshes[mesh.value()].gangs;
  const auto parked =
      std::count_if(gangs.begin(), gangs.end(), [](const GangState& gang) { return is_parked(gang.phase); });
  return static_cast<std::int64_t>(gangs.size()) - parked - 1 >= static_cast<std::int64_t>(shrink->min);
}

std::string parked_text(const CoreFacts& job) {
  std::vector<std::string> parked;
  for (std::uint32_t m = 0; m < job.state.meshes.size(); ++m) {
    for (std::uint32_t g = 0; g < job.state.meshes[m].gangs.size(); ++g) {
      if (!is_parked(job.gang(MeshId(m), GangId(g)).phase)) continue;
      parked.push_back(text(job.spec.meshes[m].name, " gang ", g));
    }
  }
  return parked.empty() ? "" : text("; parked: ", some_of(std::move(parked)));
}

std::optional<std::uint64_t> committed_step(const CoreFacts& job, RankId id) {
  const GangState& state = job.gang(id.mesh, job.mesh(id.mesh).gang_of(id.rank));
  if (!state.commits.newest) return std::nullopt;
  return state.commits.newest->step;
}

Committer committer(const CoreFacts& job, RankId id) {
  const GangId g = job.mesh(id.mesh).gang_of(id.rank);
  const RankRange range = job.placement.range_of(id.mesh, g);
  return {.generation = job.crew(id.mesh, g).generation,
          .rank = id.rank.value() - range.first,
          .ranks = range.count,
          .names = kCommitNamesBytes / ranks_of(job.spec)};
}

CommitDecision rule_on(const CoreFacts& job, HostId where, const Incarnation& process, const CommitRequest& asked) {
  const auto& [id, generation] = process;
  MONARCH_ASSERT(job.has_rank(id));
  const GangState& state = job.gang(id.mesh, job.mesh(id.mesh).gang_of(id.rank));
  const Generation now = job.crew_with(id).generation;
  if (generation != now) {
    return refused_commit(text("generation ", generation.counter, " of this gang is over, ", now.counter,
                               " has its place: what it writes does not count"));
  }
  if (!judge(job, where, {.process = process}).granted) {
    return refused_commit("the supervisor has given this rank up: what it writes does not count");
  }
  return rule_commit(state.commits, committer(job, id), asked);
}

std::optional<TimeBin> bin_of(const GangState& gang) {
  switch (gang.phase) {
    case GangPhase::kWaiting:
    case GangPhase::kReserving: return recovers(gang) ? TimeBin::kDeciding : TimeBin::kWaiting;
    case GangPhase::kParked: return TimeBin::kWaiting;
    case GangPhase::kStarting: return TimeBin::kLaunching;
    case GangPhase::kRunning:
      if (gang.first_step) {
        const bool again = gang.furthest && !gang.caught_up && *gang.first_step <= *gang.furthest;
        return again ? TimeBin::kRedone : TimeBin::kNew;
      }
      return gang.was_ready && !gang.furthest ? TimeBin::kNew : TimeBin::kStarting;
    case GangPhase::kFailing: return TimeBin::kDeciding;
    case GangPhase::kStopping: return TimeBin::kStopping;
    case GangPhase::kDone:
    case GangPhase::kFailed:
    case GangPhase::kStopped:
    case GangPhase::kIdle: return std::nullopt;
  }
  return std::nullopt;
}

NotReady not_ready(const CoreFacts& job, MeshId mesh, GangId g) {
  const GangState& state = job.gang(mesh, g);
  const bool reserving = is_reserving(state.phase);
  NotReady missing;
  if (!reserving && !runs(state.phase)) return missing;
  for (const HostId where : job.placement.hosts_of(mesh, g)) {
    if (reserving && job.crew(mesh, g).ports[*job.placement.index_in_gang(mesh, g, where)].held) continue;
    for (const RankId& id : job.placement.ranks_of(mesh, g, where)) {
      const RankState& slot = job.rank(id);
      if (!reserving && (slot.ready || (slot.reaped && !job.mesh(mesh).sidecar))) continue;
      if (!missing.first) missing.first = id;
      if (!reserving) missing.names.push_back(unready_text(job, id));
    }
    if (reserving) missing.names.push_back(text(job.name_of(where), " (has not said which ports it holds)"));
  }
  return missing;
}

std::string missing_at_start(const CoreFacts& job) {
  std::vector<std::string> hosts;
  for (std::uint32_t i = 0; i < job.hosts.size(); ++i) {
    const auto phase = job.host(HostId(i)).phase;
    if (!is_taken(job, HostId(i))) continue;  // nobody waits for a spare
    if (is_launching(phase)) hosts.push_back(text(job.hosts[i].name, " (its worker has not started)"));
    if (is_launched(phase)) hosts.push_back(text(job.hosts[i].name, " (its worker has not called back)"));
  }
  if (!hosts.empty()) return text("waiting for ", join(hosts, ", "));
  std::vector<std::string> ranks;
  std::vector<std::string> meshes;
  std::size_t missing = 0;
  for (std::uint32_t m = 0; m < job.spec.meshes.size(); ++m) {
    if (is_ready(job, MeshId(m))) continue;
    // Of meshes that wait for others, these others are what is missing.
    const std::vector<MeshId>& first = job.stages.waits_for(MeshId(m));
    if (!std::all_of(first.begin(), first.end(), [&job](MeshId other) { return is_ready(job, other); })) {
      meshes.push_back(job.spec.meshes[m].name);
      continue;
    }
    for (std::uint32_t r = 0; r < job.spec.meshes[m].size(); ++r) {
      const RankId id{MeshId(m), Rank(r)};
      const RankState& slot = job.rank(id);
      if ((slot.ready || (slot.reaped && !job.spec.meshes[m].sidecar)) && !starts_again(job, id)) continue;
      if (++missing > kMostNamed) continue;
      ranks.push_back(unready_text(job, id));
    }
  }
  std::string out = text("waiting for ranks ", join(ranks, ", "));
  if (missing > kMostNamed) out += text(" and ", missing - kMostNamed, " more");
  if (!meshes.empty()) out += text("; not started: ", join(meshes, ", "));
  return out;
}

bool waits_at_length(const CoreFacts& job, MeshId mesh, GangId g) {
  if (job.state.phase != JobPhase::kRunning) return false;
  const auto& shrink = job.mesh(mesh).supervision.shrink;
  const auto phase = job.gang(mesh, g).phase;
  return is_waiting(phase) || (is_parked(phase) && shrink && shrink->regrow);
}

std::optional<std::uint32_t> highest_stage(const CoreFacts& job) {
  std::optional<std::uint32_t> highest;
  for (std::uint32_t m = 0; m < job.state.meshes.size(); ++m) {
    const auto& gangs = job.state.meshes[m].gangs;
    const bool ended = std::all_of(gangs.begin(), gangs.end(), [](const GangState& g) { return has_ended(g.phase); });
    if (!ended) highest = std::max(highest.value_or(0), job.stages.stage_of(MeshId(m)));
  }
  return highest;
}

Duration longest_stop(const CoreFacts& job) {
  std::vector<Duration> stages(job.stages.count());
  for (std::uint32_t m = 0; m < job.spec.meshes.size(); ++m) {
    Duration& longest = stages[job.stages.stage_of(MeshId(m))];
    longest = std::max(longest, job.mesh(MeshId(m)).stop.grace + limits::kKillDeadline);
  }
  Duration all;
  for (const Duration& one : stages) all = all + one;
  return all;
}

Duration grace_left(const CoreFacts& job, Duration grace) {
  if (!job.state.foreseen || job.state.foreseen->kill == Instant::never()) return grace;
  return std::clamp(job.state.foreseen->kill - job.now, Duration::zero(), grace);
}

Duration cause_window(const CoreFacts& job) {
  constexpr Duration kCauseWindow = Duration::milliseconds(200);
  const Instant arrived = job.state.returned_at + kEndsArriveWithin;
  return job.now < arrived && job.state.returned_at > Instant() ? std::max(kCauseWindow, arrived - job.now)
                                                                : kCauseWindow;
}

}  // namespace monarch
