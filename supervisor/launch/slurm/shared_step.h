#pragma once

// SharedStep: one SharedConversation over the standard input and output of an srun that begins a process on each of
// several nodes. What srun itself says goes to a file. The srun lives on once a worker of it has answered; then nothing
// ends it but the end of its processes.
//
// Thread: the supervisor's loop. Lifetime: shorter than that of its programs and the loop. Its end ends an srun of
// which no worker has answered, and leaves any other one alone.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/launch/fair_timer.h"
#include "supervisor/launch/slurm/shared_conversation.h"
#include "supervisor/launch/talk/piped_program.h"
#include "supervisor/launch/talk/program_talk.h"
#include "transport/loop/scope.h"

namespace monarch {

// None is told within a call of its owner's.
struct SharedStepHandlers {
  std::function<void(const SharedNews&)> on_news;
  // Once, and last: all have had their last word, and the srun has ended, or is killed because nothing came of it. May
  // destroy the step.
  std::function<void()> on_end;
};

class SharedStep {
 public:
  // `options.silence`: before any node has shown itself, and once they start; in between it is a third of that.
  static Result<std::unique_ptr<SharedStep>> start(EventLoop& loop, Programs& programs, std::vector<RemoteOrder> orders,
                                                   ProgramTalkOptions options, SharedStepHandlers handlers);
  SharedStep(const SharedStep&) = delete;
  SharedStep& operator=(const SharedStep&) = delete;

  void give_bootstrap(std::size_t node, std::string frame) { conversation_.give_bootstrap(node, std::move(frame)); }
  void withdraw(std::size_t node);
  Duration copy() const { return copy_; }  // zero: nothing was copied

 private:
  SharedStep(EventLoop& loop, std::vector<RemoteOrder> orders, ProgramTalkOptions options, SharedStepHandlers handlers)
      : loop_(loop),
        conversation_(std::move(orders)),
        options_(std::move(options)),
        handlers_(std::move(handlers)),
        deadline_(loop) {}
  Status open(Programs& programs);
  void on_program_end(const std::string& rest);
  void on_silence(const std::string& late);
  void go_on();
  void write();
  void expect_more();

  EventLoop& loop_;
  SharedConversation conversation_;
  ProgramTalkOptions options_;
  SharedStepHandlers handlers_;
  std::unique_ptr<PipedProgram> program_;
  FairTimer deadline_;
  std::uint64_t progress_ = 0;  // of the conversation, when the deadline was set
  bool serves_ = false;         // a worker of it has answered
  bool ended_ = false;          // the srun
  Instant copy_began_ = Instant::never();
  Duration copy_;
  // Owner: this. Deferred calls, and what tells news, ask whether it is still there.
  Scope scope_;
};

}  // namespace monarch
