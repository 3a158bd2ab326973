#pragma once

// CoreFacts: what each part of the core reads: what the job is, what is known of it, what time it is. CoreBasis: and
// how it speaks; actions and events go out in the order in which they are said.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's, which has all that it refers to.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/spec/placement.h"
#include "supervisor/core/spec/rank_texts.h"
#include "supervisor/core/spec/resources.h"
#include "supervisor/core/spec/stages.h"
#include "supervisor/core/state/actions.h"
#include "supervisor/core/state/job_state.h"
#include "transport/base/time.h"

namespace monarch {

struct JobCoreOptions {
  std::string job_id;
  std::map<std::string, std::string> shell = {};  // of the submitting shell, what $(env.NAME) names; in no journal
  std::string log_directory;                      // of hosts that tell none: error files go to
                                                  // <log_directory>/<mesh>/<rank>.<generation>.error.json
};

struct CrewStop {
  std::int32_t signal = 15;
  Duration grace;
  Instant deadline;    // when its hosts are given up
  bool again = false;  // also where it was ordered before
};

inline constexpr Duration kStopMargin = Duration::seconds(5);  // beyond grace and KILL: for the words to travel

// What is known of the job.
struct CoreFacts {
  const JobSpec& spec;
  const std::vector<PoolHost>& hosts;
  const JobCoreOptions& options;
  const Placement& placement;
  const Stages& stages;
  const Resources& resources;
  const std::vector<MeshTexts>& texts;
  const JobState& state;
  const Instant& now;

  const MeshSpec& mesh(MeshId id) const { return spec.meshes[id.value()]; }
  const HostState& host(HostId id) const { return state.hosts[id.value()]; }
  const std::string& name_of(HostId id) const { return hosts[id.value()].name; }
  const GangState& gang(MeshId mesh, GangId gang) const { return state.meshes[mesh.value()].gangs[gang.value()]; }
  const RankState& rank(RankId id) const { return state.meshes[id.mesh.value()].ranks[id.rank.value()]; }
  const Crew& crew(MeshId mesh, GangId gang) const { return crew_in(state, mesh, gang); }
  // The gang's that this rank of the spec is of, and what it is in it.
  const Crew& crew_with(RankId id) const {
    const std::vector<Crew>& gangs = state.crews[id.mesh.value()];
    return gangs[id.rank.value() / gangs.front().members.size()];
  }
  const CrewMember& member(RankId id) const {
    const Crew& of = crew_with(id);
    return of.members[id.rank.value() % of.members.size()];
  }
  // "trainer/3"
  std::string name_of(RankId id) const;
  // "trainer/0-3,7", and of several meshes each
  std::string names_of(std::vector<RankId> ranks) const;
  bool has_rank(RankId id) const {
    return id.mesh.value() < spec.meshes.size() && id.rank.value() < mesh(id.mesh).size();
  }
  bool may_serve(HostId id) const { return monarch::may_serve(host(id)); }
  bool starts_nothing() const { return state.phase >= JobPhase::kStopping || state.foreseen; }
  // What the texts of a mesh may name; no port is known.
  ReferenceSources sources() const {
    return {.spec = spec, .placement = placement, .hosts = hosts, .port = nullptr, .shell = options.shell};
  }
  JobEvent event(EventKind kind, Severity severity, std::string message) const;
  // For the end of what is said of somebody whose time is up: how late the supervisor was since that was set.
  std::string late_since(Duration before) const;
  template <class Visit>
  void each_gang(Visit visit) const {
    for (std::uint32_t m = 0; m < state.meshes.size(); ++m) {
      for (std::uint32_t g = 0; g < state.meshes[m].gangs.size(); ++g) visit(MeshId(m), GangId(g));
    }
  }
  // Those that have ranks on that host; of a thousand gangs these are few.
  template <class Visit>
  void each_gang_on(HostId where, Visit visit) const {
    for (std::uint32_t m = 0; m < state.meshes.size(); ++m) {
      const GangRange here = placement.gangs_on(MeshId(m), where);
      for (std::uint32_t g = here.first; g < here.first + here.count; ++g) visit(MeshId(m), GangId(g));
    }
  }
};

struct CoreBasis : CoreFacts {
  std::vector<Action>& actions;
  std::uint64_t& next_event;
  bool& waits_due;  // within a step: something changed that somebody may wait for

  void emit(JobEvent event) const;
  // Of a crew beside the gangs, which has nothing to save.
  CrewStop stop_beside(std::int32_t signal) const;
  void say_of_gang(MeshId mesh, GangId gang, EventKind kind, Severity severity, const std::string& what,
                   const EventDetails& more = {}) const;
};

}  // namespace monarch
