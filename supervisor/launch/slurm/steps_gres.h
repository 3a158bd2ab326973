#pragma once

// StepsGres: knows which GPUs the steps of a job ask for, once it has asked Slurm what the job has; it asks once, when
// that is first wanted. Where the answer does not come, or cannot be read, steps ask for none, and the log says so.
//
// Thread: the supervisor's loop. Lifetime: shorter than that of its calls.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "supervisor/launch/slurm/slurm_calls.h"
#include "supervisor/launch/slurm/slurm_gres.h"
#include "transport/loop/scope.h"

namespace monarch {

class StepsGres {
 public:
  StepsGres(SlurmCalls& calls, std::uint32_t job, Words environment)
      : calls_(calls), job_(job), environment_(std::move(environment)) {}

  // Whether it is known. If not, `then` is called when it is: of those who asked before, only by the first.
  bool known(std::function<void()> then);
  // Options of srun for a step on this node, or on all of these: nothing where there are none, or what they have is not
  // known.
  Words options(const std::string& node) const { return gres_options(gres_, node); }
  std::optional<Words> shared_options(const Words& nodes) const {
    return gres_.empty() ? std::nullopt : shared_gres_options(gres_, nodes);
  }

 private:
  void learn(const Result<std::string>& answer);

  enum class Phase : std::uint8_t { kUnasked, kAsked, kKnown };
  SlurmCalls& calls_;
  std::uint32_t job_;
  Words environment_;
  Phase phase_ = Phase::kUnasked;
  JobGres gres_;
  // Owner: this. A call that could not be made is answered when this may be gone.
  Scope scope_;
};

}  // namespace monarch
