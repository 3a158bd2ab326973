#include "supervisor/drill/scenario/hang_times.h"

#include <algorithm>

#include "supervisor/core/spec/given_times.h"

namespace monarch::drill {

std::optional<Duration> restart_of_stopped(const MeshSpec& mesh) {
  const HangPolicy& hang = mesh.supervision.hang;
  if (hang.action != HangAction::kRestart) return std::nullopt;
  const auto step = hang.phases.find("step");
  if (step == hang.phases.end() || !step->second.written || !step->second.longest) return kStoppedGrace;
  return std::min(kStoppedGrace, *step->second.longest);
}

std::optional<Duration> restart_of_stopped(const JobSpec& spec) {
  std::optional<Duration> shortest;
  for (const MeshSpec& mesh : spec.meshes) {
    const auto own = restart_of_stopped(mesh);
    if (!own) return std::nullopt;
    shortest = std::min(shortest.value_or(*own), *own);
  }
  return shortest;
}

}  // namespace monarch::drill
