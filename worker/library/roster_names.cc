#include "worker/library/roster_names.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

const RosterMesh* find_mesh(const PostWelcome& welcome, const std::string& name) {
  const auto found = std::find_if(welcome.meshes.begin(), welcome.meshes.end(),
                                  [&](const RosterMesh& mesh) { return mesh.name == name; });
  return found == welcome.meshes.end() ? nullptr : &*found;
}

std::uint32_t size_of(const RosterMesh& mesh) {
  return std::accumulate(mesh.dims.begin(), mesh.dims.end(), std::uint32_t{1},
                         [](std::uint32_t all, const RosterDim& dim) { return all * dim.size; });
}

Error no_mesh(const PostWelcome& welcome, const std::string& name) {
  std::vector<std::string> names;
  for (const RosterMesh& mesh : welcome.meshes) names.push_back(mesh.name);
  return {ErrorCode::kNotFound, text("this job has no mesh ", printable(name), nearest_or_all(name, names))};
}

}  // namespace monarch
