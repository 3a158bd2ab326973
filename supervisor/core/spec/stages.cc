#include "supervisor/core/spec/stages.h"

#include <algorithm>

#include "transport/base/assert.h"

namespace monarch {

namespace {

// Depth-first, with the way that led here: a mesh that is met on it again closes a ring.
class RingSearch {
 public:
  explicit RingSearch(const JobSpec& spec) : spec_(spec), done_(spec.meshes.size(), false) {}

  std::optional<std::vector<MeshId>> find() {
    for (std::uint32_t i = 0; i < spec_.meshes.size(); ++i) {
      if (auto ring = visit(MeshId(i))) return ring;
    }
    return std::nullopt;
  }

 private:
  std::optional<std::vector<MeshId>> visit(MeshId mesh) {
    const auto met = std::find(way_.begin(), way_.end(), mesh);
    if (met != way_.end()) return std::vector<MeshId>(met, way_.end());
    if (done_[mesh.value()]) return std::nullopt;
    way_.push_back(mesh);
    for (const MeshId next : spec_.meshes[mesh.value()].depends_on) {
      if (auto ring = visit(next)) return ring;
    }
    way_.pop_back();
    done_[mesh.value()] = true;
    return std::nullopt;
  }

  const JobSpec& spec_;
  std::vector<bool> done_;
  std::vector<MeshId> way_;
};

}  // namespace

std::optional<std::vector<MeshId>> ring_of_dependencies(const JobSpec& spec) { return RingSearch(spec).find(); }

Stages::Stages(const JobSpec& spec) : stage_of_(spec.meshes.size(), 0) {
  for (const MeshSpec& mesh : spec.meshes) {
    std::vector<MeshId> others = mesh.depends_on;
    for (std::uint32_t i = 0; i < spec.meshes.size() && !mesh.sidecar; ++i) {
      if (spec.meshes[i].sidecar) others.emplace_back(i);
    }
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    waits_for_.push_back(std::move(others));
  }
  // Without a ring every stage is known after as many rounds as there are meshes.
  bool changed = !spec.meshes.empty();
  for (std::size_t round = 0; changed; ++round) {
    MONARCH_ASSERT(round <= spec.meshes.size());
    changed = false;
    for (std::size_t i = 0; i < waits_for_.size(); ++i) {
      for (const MeshId other : waits_for_[i]) {
        if (stage_of_[i] > stage_of_[other.value()]) continue;
        stage_of_[i] = stage_of_[other.value()] + 1;
        changed = true;
      }
    }
  }
  for (const std::uint32_t stage : stage_of_) count_ = std::max(count_, stage + 1);
}

bool Stages::starts_after(MeshId mesh, MeshId earlier) const {
  // Stages only fall on the way down, so it ends.
  return std::any_of(waits_for(mesh).begin(), waits_for(mesh).end(),
                     [&](MeshId next) { return next == earlier || starts_after(next, earlier); });
}

}  // namespace monarch
