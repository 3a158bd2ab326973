#pragma once

// SlurmContinuation: asks Slurm that a job which it takes the nodes of goes on: by its own job, which is requeued and
// runs its script again, or by another one. What an answer that was lost has done is looked for before it is asked
// again.
//
// Thread: the supervisor's loop. Lifetime: shorter than that of the loop and of the calls.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/core/spec/launch_facts.h"
#include "supervisor/launch/launcher.h"
#include "supervisor/launch/slurm/slurm_calls.h"
#include "supervisor/launch/slurm/slurm_commands.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/scope.h"

namespace monarch {

struct SlurmContinuationOptions {
  OnPreempt how = OnPreempt::kRequeue;
  std::uint32_t slurm_job = 0;  // whose nodes are taken
  ContinuationOrder order;
  Words environment;                   // slurm_environment()
  std::vector<std::string> variables;  // names of those that this process has
};

class SlurmContinuation final : public Continuation {
 public:
  using Then = Launcher::OnContinued;

  SlurmContinuation(EventLoop& loop, SlurmCalls& calls, SlurmContinuationOptions options, Then then);
  SlurmContinuation(const SlurmContinuation&) = delete;
  SlurmContinuation& operator=(const SlurmContinuation&) = delete;
  ~SlurmContinuation() override;

  void ask() override;

 private:
  void requeue();
  void submit();
  void look();
  void call(Words command, void (SlurmContinuation::*then)(const Result<std::string>& answer));
  void on_marked(const Result<std::string>& answer);
  void on_requeued(const Result<std::string>& answer);
  void on_state(const Result<std::string>& answer);
  void on_submitted(const Result<std::string>& answer);
  void on_looked(const Result<std::string>& answer);
  void try_again(const Error& why);

  EventLoop& loop_;
  SlurmCalls& calls_;
  SlurmContinuationOptions options_;
  Then then_;
  bool asked_ = false;  // sbatch, of which no answer came
  Error refusal_;       // of a requeue
  TimerId retry_ = 0;
  Scope scope_;
};

}  // namespace monarch
