#pragma once

// ProgramTalk: one RemoteConversation over the standard input and output of a program, which carries them to a process
// on a host: an srun, or a command of the user's. What the program itself says goes to a file. It may live on after
// the answer; then nothing more is written. A check is spoken with until its talk ends, and then reads the end of its
// input.
//
// Thread: the loop's. Lifetime: shorter than that of its programs and the loop. Its end ends a program that has not
// answered, and leaves one alone that has, or that speaks: it has things to take back.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/launch/fair_timer.h"
#include "supervisor/launch/talk/piped_program.h"
#include "supervisor/launch/talk/programs.h"
#include "supervisor/launch/talk/remote_conversation.h"
#include "supervisor/launch/talk/worker_image.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/loop/event_loop.h"

namespace monarch {

struct ProgramTalkOptions {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment{};  // added to the submitting shell's
  std::string greeting{};  // written before anything else: what makes of a shell the script of remote_script.h
  std::shared_ptr<const WorkerImage> image;        // owners: the launcher and its talks, which only read it
  std::string log{};                               // path of the file for what the program itself says; may be empty
  std::string program;                             // what is executed, for people: "srun"
  std::string place;                               // where it leads: "a step on the node"
  std::string none;                                // that it has not: "started no step on the node"
  Duration silence = Duration::seconds(30);        // no byte either way for so long
  Duration begins_within = Duration::seconds(30);  // the same, until there is such a place
  // What the program's last words mean, where there never was.
  std::function<LaunchFailureKind(std::string_view words)> kind_of;
};

// None is told within a call of its owner's; all but the first may destroy the talk.
struct ProgramTalkHandlers {
  // From where the host was reached, as it sees that (empty: it does not say): now the order's bootstrap can be given.
  // What it returns is the answer, and the talk is over; this one may not destroy it. May be empty.
  std::function<std::optional<LaunchFailure>(const std::string& address)> on_place;
  std::function<void(const RemoteAnswer&)> on_answer;  // once; the answer goes with the talk
  std::function<void()> on_end;                        // once, after the answer: the program has ended
  // kCheck: it speaks, and has said this since, which may be nothing.
  std::function<void(const std::string& bytes)> on_heard{};
};

class ProgramTalk {
 public:
  static Result<std::unique_ptr<ProgramTalk>> start(EventLoop& loop, Programs& programs, RemoteOrder order,
                                                    ProgramTalkOptions options, ProgramTalkHandlers handlers);
  ProgramTalk(const ProgramTalk&) = delete;
  ProgramTalk& operator=(const ProgramTalk&) = delete;

  void give_bootstrap(std::string frame);
  // kCheck, that speaks; how long it may take to answer is up to who asks.
  void say(std::string_view bytes);
  bool talking() const { return conversation_.talking(); }
  // Whether something was executed that may run on, if the answer is a failure.
  bool handed_over() const { return handed_over_; }
  // Whether the script has begun on its host.
  bool placed() const { return placed_; }
  Duration copy() const { return copy_; }  // zero: nothing was copied

 private:
  ProgramTalk(EventLoop& loop, Programs& programs, RemoteOrder order, ProgramTalkOptions options,
              ProgramTalkHandlers handlers)
      : loop_(loop),
        programs_(programs),
        conversation_(std::move(order)),
        options_(std::move(options)),
        handlers_(std::move(handlers)),
        deadline_(loop) {}
  Status open();
  void on_output(const std::string& bytes);
  void on_program_end(const std::optional<RankEnd>& end, const std::string& rest);
  void go_on();
  void write_turn();
  void note_talk();
  void expect_more();
  void answer();
  void note_copy();
  LaunchFailure not_started(const std::string& how, std::optional<LaunchFailureKind> kind = {}) const;

  EventLoop& loop_;
  Programs& programs_;
  RemoteConversation conversation_;
  ProgramTalkOptions options_;
  ProgramTalkHandlers handlers_;
  std::unique_ptr<PipedProgram> program_;
  FairTimer deadline_;
  bool placed_ = false;
  std::string bootstrap_;
  RemoteAnswer answer_;
  bool answered_ = false;
  bool handed_over_ = false;
  Instant copy_began_ = Instant::never();
  Duration copy_;
};

}  // namespace monarch
