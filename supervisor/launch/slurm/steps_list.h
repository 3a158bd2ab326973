#pragma once

// StepsList: asks Slurm which steps a job has, once for all who want to know within a turn of the loop.
//
// Thread: the supervisor's loop. Lifetime: shorter than that of its calls and the loop; what is asked then is not
// answered.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "supervisor/launch/slurm/slurm_calls.h"
#include "supervisor/launch/slurm/slurm_commands.h"
#include "transport/loop/scope.h"

namespace monarch {

class StepsList {
 public:
  using Then = std::function<void(const Result<std::vector<SlurmStep>>&)>;

  StepsList(EventLoop& loop, SlurmCalls& calls, Words environment)
      : loop_(loop), calls_(calls), environment_(std::move(environment)) {}

  // Not within this call.
  void ask(std::uint32_t job, Then then);

 private:
  void call();

  EventLoop& loop_;
  SlurmCalls& calls_;
  Words environment_;
  std::map<std::uint32_t, std::vector<Then>> asked_;  // by job
  // Owner: this. Deferred calls and answers ask whether it is still there.
  Scope scope_;
};

}  // namespace monarch
