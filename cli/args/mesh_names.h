#pragma once

// The names of a spec's meshes, by MeshId: those that a person wrote. log_mesh_names() of
// supervisor/core/spec/job_spec.h also has those that only folders of output have.
//
// Thread: a pure function.

#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"

namespace monarch {

inline std::vector<std::string> mesh_names(const JobSpec& spec) {
  std::vector<std::string> names;
  for (const MeshSpec& mesh : spec.meshes) names.push_back(mesh.name);
  return names;
}

}  // namespace monarch
