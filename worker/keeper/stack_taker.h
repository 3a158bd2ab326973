#pragma once

// StackTaker: lets a debugger of this host look at the stacks of a rank's processes. It runs as a child of the keeper,
// which is whom ranks allow that (PR_SET_PTRACER, prctl(2)): py-spy for a Python program, eu-stack, or gdb, whichever
// is there first. A rank stands still while it is looked at. One that is already being looked at waits its turn; a
// debugger that is killed leaves nothing stopped.
//
// Thread: the keeper's. Lifetime: shorter than those of the loop and the watch.

#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "transport/loop/event_loop.h"
#include "transport/loop/scope.h"
#include "transport/messages/stacks.h"
#include "transport/process/child_watch.h"
#include "transport/process/process_scan.h"
#include "worker/core/environment.h"
#include "worker/core/keeper_actions.h"
#include "worker/core/stack_tool.h"
#include "worker/keeper/tool_run.h"

namespace monarch {

struct StackTakerHandlers {
  // The rank's own process; or why there is none to look at: kEnded or kNotExecuted.
  std::function<std::variant<pid_t, StacksEnd>(const Incarnation&)> leader;
  std::function<void(const Incarnation&, Stacks)> answer;  // once for each question
};

class StackTaker {
 public:
  StackTaker(EventLoop& loop, ChildWatch& watch, const Environment& base, StackTakerHandlers handlers);
  StackTaker(const StackTaker&) = delete;
  StackTaker& operator=(const StackTaker&) = delete;
  ~StackTaker();

  void take(const TakeStacks& order);
  // This rank is about to be killed, and what traces it would hold up the news of its end: it is let go of at once.
  void abandon(const Incarnation& key);
  // This rank was stopped by a signal, or told to go on, whatever it did when somebody began to look at it: so it
  // stays.
  void leave(const Incarnation& key, bool stopped);
  // Whether this is a debugger that looks at a rank for us.
  bool is_ours(pid_t tracer) const;

 private:
  struct Look {
    Incarnation key;
    TakeStacks order;
    Instant give_up;
    Instant deadline;               // once it has begun
    std::deque<ProcessEntry> left;  // processes that nobody has looked at
    ProcessEntry process;           // that is being looked at
    StackTarget target;             // the same
    std::deque<StackTool> untried;  // for it; the first is the run's
    std::string tried;              // why an earlier one did not do
    std::size_t bytes_left = 0;
    Stacks stacks;
    std::unique_ptr<ToolRun> run;  // also once it was answered, until no process of it is left
    ToolEnd heard;                 // of the run
    std::optional<bool> stopped;   // since it began, by others than the debugger
    bool abandoned = false;
    bool answered = false;
  };
  using Looks = std::list<Look>;

  void begin_waiting();
  bool is_looked_at(const Incarnation& key) const;
  void begin(Look& look);
  void go_on(Look& look);
  void try_next_tool(Look& look);
  void on_end(Look& look, ToolEnd end);
  void on_gone(Look& look);
  void take_in(Look& look);
  void put(Look& look, StackTool tool, StackVerdict verdict);
  void answer(Look& look);
  void refuse(const Look& look, StacksEnd end, std::string detail);
  void sweep();

  EventLoop& loop_;
  ChildWatch& watch_;
  const std::vector<std::string> environment_;
  StackTakerHandlers handlers_;
  std::deque<Look> waiting_;
  Looks looks_;
  TimerId timer_ = 0;
  Scope scope_;
};

}  // namespace monarch
