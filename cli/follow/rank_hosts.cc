#include "cli/follow/rank_hosts.h"

#include <algorithm>

#include "supervisor/core/spec/placement.h"

namespace monarch {

RankHosts::RankHosts(const JobSpec& spec) {
  const Placement placement(spec);
  const std::vector<PoolHost> pool = pool_of(spec);
  for (std::uint32_t m = 0; m < spec.meshes.size(); ++m) {
    for (std::uint32_t r = 0; r < spec.meshes[m].size(); ++r) {
      const RankId rank{MeshId(m), Rank(r)};
      hosts_.emplace(rank, pool[placement.host_of(rank).value()].name);
    }
  }
}

void RankHosts::on_event(const JobEvent& event) {
  if (event.kind != EventKind::kHostReplaced && event.kind != EventKind::kHostNamed) return;
  const auto replaced = std::find_if(event.details.begin(), event.details.end(),
                                     [](const auto& detail) { return detail.first == "replaces"; });
  if (replaced == event.details.end()) return;
  for (auto& [rank, host] : hosts_) {
    if (host == replaced->second) host = event.host;
  }
}

void RankHosts::on_events(const std::vector<JobEvent>& events) {
  for (const JobEvent& event : events) on_event(event);
}

const std::string& RankHosts::host_of(RankId rank) const {
  const auto found = hosts_.find(rank);
  return found == hosts_.end() ? unknown_ : found->second;
}

}  // namespace monarch
