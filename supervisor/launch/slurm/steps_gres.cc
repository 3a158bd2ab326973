#include "supervisor/launch/slurm/steps_gres.h"

#include <utility>

#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

bool StepsGres::known(std::function<void()> then) {
  if (phase_ != Phase::kUnasked) return phase_ == Phase::kKnown;
  phase_ = Phase::kAsked;
  calls_.call(job_detail_query(job_, environment_),
              scope_.guard([this, then = std::move(then)](const Result<std::string>& answer) {
                learn(answer);
                then();
              }));
  return false;
}

void StepsGres::learn(const Result<std::string>& answer) {
  phase_ = Phase::kKnown;
  auto gres = answer.ok() ? read_job_gres(*answer, job_) : Result<JobGres>(answer.error());
  if (gres.ok()) {
    gres_ = std::move(*gres);
    return;
  }
  log_warn("which GPUs job ", job_, " of Slurm has on its nodes is not known (", gres.error().message,
           "): its steps ask for none, and get those of --gres and --gpus-per-node alone");
}

}  // namespace monarch
