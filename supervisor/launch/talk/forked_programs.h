#pragma once

// ForkedPrograms: programs that this process forks itself. They live on when it ends: what they read then is the end of
// their input. Of this process's environment they get all but the marks by which a job's processes are found.
//
// Thread: the main one of a process that has no other whenever a program is started. Lifetime: shorter than the loop's.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/launch/talk/programs.h"
#include "transport/loop/event_loop.h"
#include "transport/process/child_watch.h"
#include "transport/process/spawn.h"

namespace monarch {

class ForkedPrograms final : public Programs {
 public:
  explicit ForkedPrograms(EventLoop& loop) : ends_(loop) {}

  Result<Ticket> start(std::vector<std::string> program, ProgramStreams streams, OnEnd on_end,
                       std::map<std::string, std::string> environment) override;
  void kill(Ticket ticket) override;
  void let_live(Ticket) override {}  // they do
  void disown(Ticket ticket) override;

 private:
  struct Running {
    std::unique_ptr<Child> child;
    OnEnd on_end;
  };
  void ended(Ticket ticket, const ExitStatus& status);

  Ticket next_ = 1;
  std::map<Ticket, Running> running_;
  ChildWatch ends_;
};

}  // namespace monarch
