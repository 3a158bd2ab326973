#pragma once

// ToolRun: a program that a keeper starts, hears to its end within a deadline, and kills if it takes longer. What it
// writes is read as it comes: so much of it is kept, the rest dropped, so that it never waits for its reader. A file
// system that does not answer stops the child that searches it, and never this loop.
//
// Thread: the keeper's. Lifetime: shorter than those of the loop and the watch. Destroying one that runs kills it.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/loop/event_loop.h"
#include "transport/process/child_watch.h"
#include "transport/process/spawn.h"

namespace monarch {

struct ToolOrder {
  std::vector<std::string> program;  // searched for in the PATH of `environment`
  std::vector<std::string> environment;
  Instant deadline;
  std::size_t output_bytes = 0;  // kept of its standard output
};

struct ToolEnd {
  enum class How : unsigned char { kEnded, kNotExecuted, kTimedOut };
  How how = How::kEnded;
  ExitStatus status;    // kEnded
  StepFailure failure;  // kNotExecuted
  std::string output;
  std::string error;
  bool cut = false;  // there was more output
};

class ToolRun {
 public:
  struct Handlers {
    std::function<void(ToolEnd)> on_end;  // once; at the deadline while it is still being killed
    std::function<void()>
        on_gone;  // once, after it: no process is left. It may destroy the run later, not from within.
  };
  // Nothing where it cannot even be forked.
  static Result<std::unique_ptr<ToolRun>> start(EventLoop& loop, ChildWatch& watch, ToolOrder order, Handlers handlers);
  ToolRun(const ToolRun&) = delete;
  ToolRun& operator=(const ToolRun&) = delete;
  ~ToolRun();

  // As at the deadline.
  void kill();
  // Whether the program, or what it started, is this process or thread.
  bool is(pid_t pid) const;

 private:
  struct Pipe {
    UniqueFd fd;
    WatchId watch = 0;
    std::string kept;
    std::size_t limit = 0;
    bool cut = false;
  };
  ToolRun(EventLoop& loop, ChildWatch& watch, Handlers handlers)
      : loop_(loop), watch_(watch), handlers_(std::move(handlers)) {}
  Status begin(ToolOrder order);
  Status listen(Pipe& pipe);
  void drain(Pipe& pipe);
  void close(Pipe& pipe);
  void kill_now();
  void on_exit(const ExitStatus& status);
  void end(ToolEnd end);

  EventLoop& loop_;
  ChildWatch& watch_;
  Handlers handlers_;
  Pipe output_;
  Pipe error_;
  std::unique_ptr<Child> child_;
  TimerId timer_ = 0;
  bool ended_ = false;
};

}  // namespace monarch
