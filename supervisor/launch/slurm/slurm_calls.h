#pragma once

// SlurmCalls: asks Slurm's commands, each within a time, and never waits for one: a controller that has gone or stands
// still answers after seconds, or not at all.
//
// Thread: the supervisor's loop. Lifetime: shorter than that of its programs and the loop; what is asked then is not
// answered.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/launch/fair_timer.h"
#include "supervisor/launch/talk/programs.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/loop/event_loop.h"

namespace monarch {

class SlurmCalls {
 public:
  static constexpr Duration kDeadline = Duration::seconds(10);
  static constexpr std::size_t kAnswerBytes = 1U << 20U;  // more is an error

  SlurmCalls(EventLoop& loop, Programs& programs, Duration deadline = kDeadline)
      : loop_(loop), programs_(programs), deadline_(deadline) {}
  SlurmCalls(const SlurmCalls&) = delete;
  SlurmCalls& operator=(const SlurmCalls&) = delete;
  ~SlurmCalls();

  // What it wrote to its standard output, if it ended with 0. Else kTimeout, or kUnsupported with what it said; kGone:
  // it could not be run.
  void call(std::vector<std::string> command, std::function<void(Result<std::string>)> then);

  std::size_t running() const { return calls_.size(); }

 private:
  struct Call {
    std::string name;
    std::function<void(Result<std::string>)> then;
    Programs::Ticket ticket = 0;
    UniqueFd out;
    WatchId watch = 0;
    std::unique_ptr<FairTimer> deadline;
    std::string answer;
    std::string words;
    UniqueFd err;
    WatchId err_watch = 0;
  };

  Status start(std::uint64_t number, Call& call, std::vector<std::string> command);
  void read(std::uint64_t number, bool words);
  void on_deadline(std::uint64_t number, const std::string& late);
  void on_end(std::uint64_t number, const std::optional<RankEnd>& end);
  void close(Call& call);

  EventLoop& loop_;
  Programs& programs_;
  Duration deadline_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, Call> calls_;
};

}  // namespace monarch
