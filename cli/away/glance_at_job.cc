#include "cli/away/glance_at_job.h"

#include <algorithm>

#include "cli/job/spec_input.h"
#include "supervisor/client/job_view.h"
#include "supervisor/client/link/viewer_json.h"
#include "supervisor/client/new_job.h"

namespace monarch {

JobGlance glance_at_job(const std::string& id) {
  const auto state = open_state();
  if (!state.ok()) return {};
  const auto view = JobView::open(*state, id);
  if (!view.ok()) return {};
  const auto verdict = view->verdict();
  if (verdict.ok() && *verdict) {
    return {
        .life = "ended", .phase = std::string(outcome_name((*verdict)->outcome)), .exit_code = (*verdict)->exit_code};
  }
  JobGlance glance{.life = view->live() || view->awaited_from() ? "live" : "abandoned", .phase = ""};
  const auto words = view->spec_text();
  const auto directory = view->spec_directory();
  if (!words.ok() || !directory.ok()) return glance;
  const auto spec = parse_stored_spec(*words, *directory);
  if (!spec.ok()) return glance;
  const auto status = view->status(*spec);
  if (!status.ok()) return glance;
  glance.phase = status->phase;
  for (const MeshStatus& mesh : status->meshes) {
    glance.running += static_cast<std::uint64_t>(std::count_if(
        mesh.ranks.begin(), mesh.ranks.end(), [](const RankStatus& rank) { return rank.phase == "running"; }));
  }
  return glance;
}

}  // namespace monarch
