#include "supervisor/core/inheritance.h"

#include <algorithm>

#include "supervisor/core/job_spec.h"
#include "supervisor/core/job_state.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// As a vault says where it keeps one (monarch-rank(7)).
constexpr std::string_view kInMemory = "vault:";

bool was_in_memory(const GangCheckpoint& checkpoint) {
  return std::any_of(checkpoint.what.begin(), checkpoint.what.end(),
                     [](const std::string& what) { return what.starts_with(kInMemory); });
}

std::optional<MeshId> mesh_called(const JobSpec& spec, const std::string& name) {
  for (std::uint32_t m = 0; m < spec.meshes.size(); ++m) {
    if (spec.meshes[m].name == name) return MeshId(m);
  }
  return std::nullopt;
}

bool have_begun(const MeshState& mesh) {
  return std::any_of(mesh.gangs.begin(), mesh.gangs.end(),
                     [](const GangState& gang) { return gang.generation.counter > 0; });
}

}  // namespace

Inheritance inherit(const JobSpec& spec, const JobSpec& before, const JobState& state) {
  Inheritance all;
  for (std::uint32_t b = 0; b < before.meshes.size() && b < state.meshes.size(); ++b) {
    const MeshSpec& had = before.meshes[b];
    const MeshState& known = state.meshes[b];
    const auto mesh = mesh_called(spec, had.name);
    if (!have_begun(known)) continue;
    if (!mesh) {
      all.lost.push_back(text("mesh ", had.name, " is none of this job's"));
      continue;
    }
    const MeshSpec& has = spec.meshes[mesh->value()];
    if (has.gangs() != had.gangs() || has.size() != had.size()) {
      all.lost.push_back(text("mesh ", had.name, " begins anew: it had ", had.size(), " ranks in ", had.gangs(),
                              had.gangs() == 1 ? " gang, and has " : " gangs, and has ", has.size(), " in ",
                              has.gangs()));
      continue;
    }
    for (std::uint32_t g = 0; g < known.gangs.size(); ++g) {
      const GangState& gang = known.gangs[g];
      if (gang.generation.counter == 0) continue;
      InheritedGang one{.mesh = *mesh,
                        .gang = GangId(g),
                        .generation = gang.generation.counter,
                        .furthest = gang.furthest,
                        .checkpoint = gang.commits.newest};
      if (one.checkpoint && was_in_memory(*one.checkpoint)) {
        all.lost.push_back(text(had.name, ": gang ", g, " does not go on from step ", one.checkpoint->step,
                                ", which only hosts of that job had in their memory"));
        one.checkpoint.reset();
      }
      all.gangs.push_back(std::move(one));
    }
  }
  return all;
}

}  // namespace monarch
