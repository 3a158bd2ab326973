// What a job has of the one that it goes on from: generations and checkpoints of its gangs, before it begins.

#include "supervisor/core/job/job_core.h"
#include "transport/base/text.h"

namespace monarch {

// What of it fits was chosen before (inheritance.h). Said again by a supervisor that comes back before the job has
// begun, it begins anew.
void JobCore::on(const GangsInherited& event) {
  if (state_.phase != JobPhase::kNew) return;
  for (const InheritedGang& from : event.gangs) {
    if (from.mesh.value() >= state_.meshes.size()) continue;
    if (from.gang.value() >= state_.meshes[from.mesh.value()].gangs.size()) continue;
    GangState& to = gang(from.mesh, from.gang);
    auto& newest = to.commits.newest;
    if (from.first > 0) {
      const bool more = newest && from.checkpoint && newest->what.size() == from.first;
      if (more) newest->what.insert(newest->what.end(), from.checkpoint->what.begin(), from.checkpoint->what.end());
      continue;
    }
    crews_.inherit({from.mesh, from.gang}, from.generation);
    to.furthest = from.furthest;
    newest = from.checkpoint;
  }
}

void JobCore::take_over(const JobBegun& event) {
  if (event.continues.empty()) return;
  // One that is not whole is none.
  each_gang([this](MeshId m, GangId g) {
    auto& newest = gang(m, g).commits.newest;
    if (newest && newest->what.size() != mesh_spec(m).gang_size()) newest.reset();
  });
  emit(event_of(EventKind::kJobContinues, event.lost.empty() ? Severity::kInfo : Severity::kWarning,
                text(options_.job_id, " goes on from ", printable(event.continues), event.lost.empty() ? "" : "; ",
                     join(event.lost, "; "))));
}

}  // namespace monarch
