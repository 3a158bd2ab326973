#pragma once

// CoreBasis: what each part of the core reads, and how it speaks: what the job is, what is known of it, what time it
// is; actions and events go out in the order in which they are said.
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

struct CoreBasis {
  const JobSpec& spec;
  const std::vector<PoolHost>& hosts;
  const JobCoreOptions& options;
  const Placement& placement;
  const Resources& resources;
  const std::vector<MeshTexts>& texts;
  const JobState& state;
  const Instant& now;
  std::vector<Action>& actions;
  std::uint64_t& next_event;

  const MeshSpec& mesh(MeshId id) const { return spec.meshes[id.value()]; }
  const HostState& host(HostId id) const { return state.hosts[id.value()]; }
  const std::string& name_of(HostId id) const { return hosts[id.value()].name; }
  // What the texts of a mesh may name; no port is known.
  ReferenceSources sources() const {
    return {.spec = spec, .placement = placement, .hosts = hosts, .port = nullptr, .shell = options.shell};
  }
  JobEvent event(EventKind kind, Severity severity, std::string message) const;
  void emit(JobEvent event) const;
  // Of a crew beside the gangs, which has nothing to save.
  CrewStop stop_beside(std::int32_t signal) const;
  // For the end of what is said of somebody whose time is up: how late the supervisor was since that was set.
  std::string late_since(Duration before) const;
};

}  // namespace monarch
