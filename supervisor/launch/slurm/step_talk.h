#pragma once

// StepTalk: one RemoteConversation over the standard input and output of a program, here an srun, which carries them to a process on a
// node. What srun itself says goes to a file. The program may live on after the answer; then nothing more is written to it.
//
// Thread: the supervisor's loop. Lifetime: shorter than that of its programs and the loop. Its end ends a program that has not answered, and
// leaves one alone that has.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/launch/slurm/guarded_programs.h"
#include "supervisor/launch/slurm/step_program.h"
#include "supervisor/launch/ssh/remote_conversation.h"
#include "supervisor/launch/ssh/worker_image.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/loop/event_loop.h"

namespace monarch {

struct StepTalkOptions {
  std::vector<std::string> command;
  std::shared_ptr<const WorkerImage> image;  // owners: the launcher and its talks, which only read it
  std::string log;                           // path of the file for what the program itself says
  Duration silence = Duration::seconds(30);  // no byte either way for so long
};

// None is told within a call of its owner's; the last two may destroy the talk.
struct StepTalkHandlers {
  // From where the step was started, as its node sees that (empty: it does not say): now the order's bootstrap can be given. What it
  // returns is the answer, and the talk is over; this one may not destroy it. May be empty.
  std::function<std::optional<LaunchFailure>(const std::string& address)> on_place;
  std::function<void(const RemoteAnswer&)> on_answer;  // once; the answer goes with the talk
  std::function<void()> on_end;                        // once, after the answer: the program has ended
};

class StepTalk {
 public:
  static Result<std::unique_ptr<StepTalk>> start(EventLoop& loop, GuardedPrograms& programs, RemoteOrder order,
                                                 StepTalkOptions options, StepTalkHandlers handlers);
  StepTalk(const StepTalk&) = delete;
  StepTalk& operator=(const StepTalk&) = delete;
  ~StepTalk();

  void give_bootstrap(std::string frame);
  // Whether something was executed that may run on, if the answer is a failure.
  bool handed_over() const { return handed_over_; }
  // Whether the step has begun on its node.
  bool placed() const { return placed_; }
  Duration copy() const { return copy_; }  // zero: nothing was copied

 private:
  StepTalk(EventLoop& loop, GuardedPrograms& programs, RemoteOrder order, StepTalkOptions options,
           StepTalkHandlers handlers)
      : loop_(loop),
        programs_(programs),
        conversation_(std::move(order)),
        options_(std::move(options)),
        handlers_(std::move(handlers)) {}
  Status open();
  void on_output(const std::string& bytes);
  void on_program_end(const std::optional<RankEnd>& end, const std::string& rest);
  void go_on();
  void expect_more();
  void answer();
  void note_copy();
  LaunchFailure not_started(LaunchFailureKind kind, const std::string& how) const;

  EventLoop& loop_;
  GuardedPrograms& programs_;
  RemoteConversation conversation_;
  StepTalkOptions options_;
  StepTalkHandlers handlers_;
  std::unique_ptr<StepProgram> program_;
  TimerId deadline_ = 0;
  bool placed_ = false;
  std::string bootstrap_;
  RemoteAnswer answer_;
  bool answered_ = false;
  bool handed_over_ = false;
  Instant copy_began_ = Instant::never();
  Duration copy_;
};

}  // namespace monarch
