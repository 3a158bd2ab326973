#pragma once

// Stages: which meshes wait for which, and so in which order a job comes up and goes down. A mesh waits for those of
// its `depends_on`; one that is no sidecar waits for every sidecar besides. Its stage is one above the highest of
// those: stages come up in order and go down in the reverse order, the members of a stage together.
//
// Thread: a value.

#include <cstdint>
#include <optional>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "transport/base/ids.h"

namespace monarch {

// Meshes of which each waits for the next and the last for the first, by `depends_on`; nothing if there is no such
// ring.
std::optional<std::vector<MeshId>> ring_of_dependencies(const JobSpec& spec);

class Stages {
 public:
  // The validator has refused rings, and sidecars that wait for a mesh that is none.
  explicit Stages(const JobSpec& spec);

  const std::vector<MeshId>& waits_for(MeshId mesh) const { return waits_for_[mesh.value()]; }
  std::uint32_t stage_of(MeshId mesh) const { return stage_of_[mesh.value()]; }
  std::uint32_t count() const { return count_; }
  // Is `mesh` started only after `earlier` was ready, directly or by others between them?
  bool starts_after(MeshId mesh, MeshId earlier) const;

 private:
  std::vector<std::vector<MeshId>> waits_for_;
  std::vector<std::uint32_t> stage_of_;
  std::uint32_t count_ = 0;
};

}  // namespace monarch
