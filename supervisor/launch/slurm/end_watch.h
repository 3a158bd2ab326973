#pragma once

// EndWatch: foresees when Slurm takes back a job's nodes: by its time limit, which it asks for at the beginning, now
// and then, and once more before it speaks; or by the signal that Slurm sends to all that runs there, of which workers
// tell.
//
// Thread: the supervisor's loop. Lifetime: within that of its calls and the loop.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "supervisor/core/state/events.h"
#include "supervisor/launch/slurm/job_end.h"
#include "supervisor/launch/slurm/slurm_calls.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/scope.h"

namespace monarch {

struct EndWatchOptions {
  std::uint32_t job = 0;                    // Slurm's id of it
  Words environment;                        // slurm_environment()
  Duration warn;                            // before the end of its time; zero: of that nobody is told
  Duration again = Duration::seconds(300);  // an operator may give a job more time
};

struct EndWatchHandlers {
  std::function<void(EndForeseen)> on_foreseen;
  std::function<void()>
      on_ending;  // it ends for another reason, as by scancel: whoever looks at states finds which one
  std::function<void(std::string)> on_short;  // its time is short of what `warn` takes; once
};

class EndWatch {
 public:
  EndWatch(EventLoop& loop, SlurmCalls& calls, EndWatchOptions options, EndWatchHandlers handlers);
  ~EndWatch();
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

  void begin();
  // Slurm has signalled what runs on a node. The first one counts.
  void on_warned(const std::string& node);

 private:
  void ask(std::function<void(const Result<std::string>&)> then);
  void look();
  void note(const JobEnd& seen);
  void look_later();
  void judge(const Result<std::string>& answer);
  void foresee(ForeseenKind kind, const std::string& why, Instant by);
  Instant by_of(std::int64_t end) const;

  EventLoop& loop_;
  SlurmCalls& calls_;
  EndWatchOptions options_;
  EndWatchHandlers handlers_;
  Duration kill_wait_ = kUsualKillWait;
  Duration warn_;
  std::optional<Instant> by_;         // the end of its time
  std::optional<Instant> warned_at_;  // by a signal
  bool judged_ = false;               // what that signal means is told
  bool short_told_ = false;
  TimerId timer_ = 0;
  TimerId patience_ = 0;
  // Owner: this. Answers ask whether it is still there.
  Scope scope_;
};

}  // namespace monarch
