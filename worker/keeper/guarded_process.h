#pragma once

// GuardedProcess: the process that a keeper guards, and the channel to it, which is descriptor 3 there. Its exit is
// told only after the last frame that it had sent.
//
// Thread: the keeper's. Lifetime: shorter than those of the loop and the watch.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/loop/event_loop.h"
#include "transport/process/child_watch.h"
#include "transport/process/spawn.h"
#include "transport/wire/seqpacket_channel.h"
#include "transport/wire/step_page.h"

namespace monarch {

inline constexpr int kGuardedChannelDescriptor = 3;

struct GuardedCommand {
  std::string executable;  // see SpawnOptions
  std::vector<std::string> program;
  std::vector<std::string> environment;               // NAME=value; the keeper's door is added
  std::vector<ChildDescriptor> descriptors;           // of every start
  std::vector<std::string> first_words;               // behind `program`, of the first start alone
  std::vector<std::pair<UniqueFd, int>> first_start;  // source and target, of the first start alone; they win
  mode_t umask = 022;
  std::optional<rlimit> descriptor_limit;
};

struct GuardedHandlers {
  std::function<void(Frame, std::vector<UniqueFd>)> on_frame;
  std::function<void()> on_hang_up;
  std::function<void(const ExitStatus&)> on_exit;
  std::function<void(const StepFailure&)> on_not_executed;  // on_exit follows
};

class GuardedProcess {
 public:
  GuardedProcess(EventLoop& loop, ChildWatch& watch, GuardedCommand command, GuardedHandlers handlers);
  ~GuardedProcess();
  GuardedProcess(const GuardedProcess&) = delete;
  GuardedProcess& operator=(const GuardedProcess&) = delete;

  // The one before it must have been told of as exited. Answers the pid, or why there is none.
  std::variant<pid_t, StepFailure> start();
  // Whoever is started from now on has them, too, from kGuardedChannelDescriptor + 1 on, and is told by
  // kKeptFdsVariable.
  void keep_open(std::vector<UniqueFd> descriptors) { kept_ = std::move(descriptors); }
  void signal(int number);
  // Nothing where nobody is there to hear it: who comes next asks anew. Who does not read it is killed.
  void send(const Frame& frame, std::vector<UniqueFd> descriptors = {});
  // 0: there is none.
  pid_t pid() const { return child_ ? child_->pid() : 0; }
  bool connected() const { return channel_ != nullptr && channel_->open(); }
  // Of its loop, in memory that it lends; a page that is none is left alone.
  void watch_steps(int page);
  std::optional<std::uint64_t> steps() const;
  // Frames that it has not read yet.
  std::size_t unread() const { return channel_ == nullptr ? 0 : channel_->pending_frames(); }

 private:
  void channel_closed(const Error& reason);
  void exited(const ExitStatus& status);
  void tell_exit();

  EventLoop& loop_;
  ChildWatch& watch_;
  GuardedCommand command_;
  GuardedHandlers handlers_;
  std::vector<UniqueFd> kept_;
  std::unique_ptr<Child> child_;
  WatchId exec_watch_ = 0;
  std::unique_ptr<SeqpacketChannel> channel_;
  std::optional<SeenSteps> steps_;
  std::optional<ExitStatus> exit_;  // learnt, and not told yet
  TimerId drain_timer_ = 0;
};

}  // namespace monarch
