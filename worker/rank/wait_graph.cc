#include "worker/rank/wait_graph.h"

namespace monarch {

std::optional<std::vector<std::string>> WaitGraph::begin(const std::string& who, const std::string& for_whom) {
  std::vector<std::string> way{who};
  std::set<std::string> seen;
  if (for_whom == who || find_way(for_whom, who, way, seen)) return way;
  waits_[who].insert(for_whom);
  return std::nullopt;
}

bool WaitGraph::find_way(const std::string& from, const std::string& to, std::vector<std::string>& way,
                         std::set<std::string>& seen) const {
  if (!seen.insert(from).second) return false;
  way.push_back(from);
  const auto found = waits_.find(from);
  if (found != waits_.end()) {
    for (const std::string& next : found->second) {
      if (next == to || find_way(next, to, way, seen)) return true;
    }
  }
  way.pop_back();
  return false;
}

}  // namespace monarch
