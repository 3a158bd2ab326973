#include "supervisor/client/abandoned_job.h"

#include "supervisor/client/job_resolver.h"
#include "supervisor/client/job_view.h"

namespace monarch {

std::optional<std::string> abandoned_job_of(const StateDir& state, const WantedSpec& spec) {
  const auto jobs = list_jobs(state);
  if (!jobs.ok()) return std::nullopt;
  for (auto job = jobs->rbegin(); job != jobs->rend(); ++job) {
    if (job->life != JobLife::kAbandoned || job_name(job->id) != spec.name) continue;
    const auto view = JobView::open(state, job->id);
    if (!view.ok() || !view->endpoint().ok()) continue;
    const auto text = view->spec_text();
    if (text.ok() && *text == spec.text) return job->id;
  }
  return std::nullopt;
}

}  // namespace monarch
