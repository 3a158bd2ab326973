#include "cli/drill/drill_orders.h"

#include <algorithm>

#include "supervisor/core/spec/placement.h"
#include "supervisor/drill/core/faults.h"
#include "supervisor/drill/scenario/hang_times.h"
#include "transport/base/text.h"

namespace monarch {

StrikeOrder strike_order(const drill::Blow& blow, const drill::FaultEntry& entry, const DrilledJob& job) {
  StrikeOrder order{.job_uuid = job.uuid, .host = blow.target.host, .ports = {}};
  if (const drill::Fault* const fault = drill::find_fault(blow.fault)) {
    order.what = fault->what;
    order.whom = fault->whom;
    order.way = fault->way;
    if (fault->what == StrikeWhat::kCut) order.ports = job.ports;
    if (fault->whom == StrikeWhom::kSupervisor) {
      order.supervisor_pid = job.supervisor_pid;
      order.job_directory = job.directory;
    }
  }
  order.mesh = blow.target.mesh;
  order.rank = blow.target.rank;
  order.processes = entry.processes;
  order.percent = entry.percent;
  order.size = entry.size;
  return order;
}

std::string blow_words(const drill::Blow& blow) {
  std::string words = blow.fault;
  if (!blow.target.mesh.empty()) {
    words += text(" of ", blow.target.mesh, "/", blow.target.rank, " on ", blow.target.host);
  } else if (!blow.target.host.empty()) {
    words += text(" of ", blow.target.host);
  }
  if (blow.lasts > Duration::zero()) words += text(", for ", to_text(blow.lasts));
  return words;
}

DrillNotice notice_of(const drill::Blow& blow, DrillWhat what, const DrillWords& words) {
  DrillNotice notice{.what = what, .drill = words.drill};
  if (what == DrillWhat::kUndone) notice.text = blow.why;
  notice.number = blow.number;
  notice.fault = blow.fault;
  notice.host = blow.target.host;
  notice.mesh = blow.target.mesh;
  if (!blow.target.mesh.empty()) notice.rank = blow.target.rank;
  notice.lasts = blow.lasts;
  notice.forgiven = words.forgiven;
  notice.who = words.who;
  return notice;
}

std::vector<drill::DrillMesh> drill_meshes(const JobSpec& spec) {
  std::vector<drill::DrillMesh> meshes;
  for (const MeshSpec& mesh : spec.meshes) {
    meshes.push_back({.name = mesh.name,
                      .ranks = mesh.size(),
                      .ranks_per_gang = mesh.gang_size(),
                      .sidecar = mesh.sidecar,
                      .hang = drill::restart_of_stopped(mesh).value_or(Duration::forever())});
  }
  return meshes;
}

drill::DrillTimes drill_times(const JobSpec& spec) {
  return {.heartbeat = spec.supervision.heartbeat,
          .suspect_after = spec.supervision.suspect_after,
          .lost_after = spec.supervision.lost_after,
          .lease = spec.supervision.lease,
          .hang = {}};
}

JobStatus status_as_placed(const JobSpec& spec) {
  JobStatus status;
  const Placement placement(spec);
  const std::vector<PoolHost> pool = pool_of(spec);
  for (std::uint32_t i = 0; i < pool.size(); ++i) {
    const bool has_ranks = placement.holds_ranks(HostId(i));
    status.hosts.push_back({.name = pool[i].name, .phase = "ready", .role = has_ranks ? "rank" : "spare"});
  }
  for (std::uint32_t m = 0; m < spec.meshes.size(); ++m) {
    const MeshSpec& mesh = spec.meshes[m];
    MeshStatus& told = status.meshes.emplace_back();
    told.gangs.assign(mesh.gangs(), {.phase = "running"});
    for (std::uint32_t rank = 0; rank < mesh.size(); ++rank) {
      const HostId host = placement.host_of({MeshId(m), Rank(rank)});
      told.ranks.push_back({.rank = rank, .phase = "running", .host = pool[host.value()].name, .ready = true});
    }
  }
  return status;
}

}  // namespace monarch
