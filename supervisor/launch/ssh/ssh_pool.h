#pragma once

// SshPool: sessions in threads, a bounded number at a time. Each task opens one session, talks over it, and what came
// of it is told by the loop. A session that may only have met a busy door (MaxStartups) is tried again, after a wait
// that grows and is different for each, so that a thousand hosts behind one door do not come back together; nothing
// else is. A session may stay after its talk, as a tunnel does: then it is beyond that number, and no more than one for
// each task.
//
// Thread: the loop's; a task's session and talk have a thread of their own, which is started for it and joined when it
// has reported last. Lifetime: shorter than the loop's. Its end cancels what runs and waits for that: at once but for
// the resolver, which has its own time.

#include <concepts>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <variant>

#include "supervisor/launch/ssh/session/ssh_session.h"
#include "supervisor/launch/ssh/session/ssh_target.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/inbox.h"
#include "transport/loop/joining_thread.h"

namespace monarch {

// What came of a talk.
struct SshVisit {
  // Most talks end with a word.
  template <class Told>
  requires std::invocable<Told&> SshVisit(Told word)  // NOLINT(google-explicit-constructor)
      : told(std::move(word)) {}
  SshVisit() = default;

  std::function<void()> told;  // by the loop, once; may be empty
  // Instead of the session's end: in its thread, until `cancel` is readable or it has ended by itself; what it returns
  // is called by the loop, once.
  std::function<std::function<void()>(int cancel)> stay;
};

struct SshTask {
  SshRoute route;
  // In the session's thread, which it may keep until `cancel` is readable. What it makes of the session ends with the
  // visit.
  std::function<SshVisit(SshSession& session, int cancel)> talk;
  // By the loop, instead: there is no session.
  std::function<void(LaunchFailure)> on_failed;
};

struct SshPoolOptions {
  std::uint32_t parallel = 64;
  std::uint32_t attempts = 6;
  Duration first_wait = Duration::milliseconds(300);  // doubles with each; up to as much again is added by chance
  std::uint64_t seed = 0;
};

class SshPool {
 public:
  using Ticket = std::uint64_t;

  static Result<std::unique_ptr<SshPool>> create(EventLoop& loop, SshPoolOptions options);
  SshPool(const SshPool&) = delete;
  SshPool& operator=(const SshPool&) = delete;
  ~SshPool();

  Ticket submit(SshTask task);
  // Nothing is told of it any more; `gone`, by the loop, when nothing of it runs, with whether its talk had begun.
  enum class Talk : std::uint8_t { kNever, kBegun };
  using Gone = std::function<void(Talk talk)>;
  void cancel(Ticket ticket, Gone gone = {});

  // By chance, so that what comes together does not come back together.
  Duration up_to(Duration most);

  std::size_t running() const { return running_.size() - staying_; }
  std::size_t staying() const { return staying_; }
  std::size_t waiting() const { return queue_.size() + resting_.size(); }

 private:
  using Outcome = std::variant<std::function<void()>, SshFailure>;

  struct Attempt {
    Ticket ticket = 0;
    SshTask task;
    std::uint32_t number = 1;
    Instant began;
  };
  struct Running {
    Attempt attempt;
    std::unique_ptr<JoiningThread> thread;
    bool cancelled = false;
    bool stays = false;  // its talk is over
    Gone gone;
  };
  struct Resting {
    Attempt attempt;
    TimerId timer = 0;
  };
  struct Report {
    Ticket ticket = 0;
    Outcome outcome;
    bool stays = false;  // the thread goes on
  };

  SshPool(EventLoop& loop, SshPoolOptions options) : loop_(loop), options_(options), state_(options.seed | 1U) {}
  void fill();
  Status start(Attempt attempt);
  static Outcome visit(const SshTask& task, int cancel, const std::function<void(std::function<void()>)>& stays);
  void on_report(Report report);
  void rest(Attempt attempt);

  EventLoop& loop_;
  SshPoolOptions options_;
  std::uint64_t state_;
  Ticket next_ = 1;
  std::unique_ptr<WatchedInbox<Report>> reports_;
  std::deque<Attempt> queue_;
  std::map<Ticket, Running> running_;
  std::size_t staying_ = 0;  // of those
  std::map<Ticket, Resting> resting_;
};

}  // namespace monarch
