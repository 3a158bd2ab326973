#pragma once

// DoorReader: reading a door is a role, which one thread has at a time. A thread that waits for something that comes by
// the door has it, so that nobody has to wake that thread; else the door's own thread, which takes it once nobody has
// had it for a millisecond, and at once where more is wanted than what they wait for. Whoever has the role handles what
// comes, one message at a time, without a lock. A thread that waits takes the role from the door's own where that is
// not wanted, and lets it go to the next one that waits.
//
// WARNING: the door's own thread never looks from time to time whether it is needed. With one such thread a rank a call
// of 64 ranks took half as long again.
//
// Thread: wait(), wake(), attend(), later(), look_soon(), handles_here() any; the others the door's own. Lifetime:
// longer than any thread is in wait().

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"
#include "worker/rank/door_client.h"

namespace monarch {

class DoorReader {
 public:
  // Owners: the door's thread, who reads, and who sends by it just now.
  using Connection = std::shared_ptr<DoorClient>;
  struct Handlers {
    std::function<void(const Connection&, DoorClient::Heard&)> heard;
    // More is to be read soon than what so many threads in wait() wait for: the door's own thread had better read. It
    // must not wait. Empty: never.
    std::function<bool(std::size_t waiting)> wanted = {};
  };

  static Result<std::unique_ptr<DoorReader>> make(Handlers handlers);
  DoorReader(const DoorReader&) = delete;
  DoorReader& operator=(const DoorReader&) = delete;

  // Reads, or waits for who does, until done() or that time. done() is asked at first, after each message that this
  // thread has handled, and after wake() of the key; without a lock.
  void wait(const void* key, const std::function<bool()>& done, Instant until);
  // Their done() may say something else.
  void wake(const void* key);
  // Handlers::wanted has just become true.
  void attend();
  // Runs on the door's thread, in this order, before whatever comes later is handled there. False: that has ended.
  bool later(std::function<void()> run);
  // serve() of the door's thread returns soon.
  void look_soon() const;
  // Whether this thread handles a message just now.
  bool handles_here() const { return handler_ == std::this_thread::get_id(); }

  // ---- of the door's thread
  void begin(Connection connection);
  // Reads, or stands by. kGone and others: the connection has ended, or `stop` is readable.
  enum class Served : std::uint8_t { kMessage, kWoken, kNothing };  // a message at most; or look_soon(); until then
  Result<Served> serve(Instant until, int stop);
  // While nobody handles anything.
  void alone(const std::function<void()>& run);
  // Once this returns nobody reads the connection, and what was left for later has run.
  void end();
  // Nothing is run later any more.
  void close();
  // False: somebody in this process has closed its descriptors.
  bool is_whole() const;

 private:
  struct Waiter {
    const void* key = nullptr;
    std::thread::id thread;
    bool woken = false;
    std::condition_variable changed = {};  // that, or the role is to be had
  };
  using Lock = std::unique_lock<std::mutex>;

  explicit DoorReader(Handlers handlers) : handlers_(std::move(handlers)) {}
  // From the door's own thread, too: what that handles is over before anything else is handled.
  bool may_take() const { return connection_ != nullptr && !ended_ && reader_ == nullptr && !(own_ && is_wanted()); }
  bool is_wanted() const { return handlers_.wanted && handlers_.wanted(waiters_.size()); }
  bool is_handled() const { return handler_.load() != std::thread::id(); }
  void take(Waiter& waiter);
  void read(Lock& lock, Waiter& waiter, Instant until);
  void sleep(Lock& lock, Waiter& waiter, Instant until);
  void leave(Waiter& waiter);
  // To one that waits, to the door's thread at once, or to that in a while.
  void hand_on();
  // The door's own thread has it from here on.
  void summon_own();
  // The first that is not about to look whether it is done; nullptr: there is none.
  Waiter* next_waiter() const;
  // What is there to be heard, if this thread may still read.
  void handle(Lock& lock, const Connection& connection, const Waiter* reader);
  // The connection is of no use any more: the door's thread ends it.
  void end_with(Error why);
  void run_later(Lock& lock);
  Result<Served> stand_by(Instant until, int stop);
  void set_alarm(bool on);

  const Handlers handlers_;
  UniqueFd wake_;   // an eventfd: of the door's thread
  UniqueFd nudge_;  // an eventfd: of another that reads
  UniqueFd alarm_;  // a timerfd: the role has been free for long enough
  std::mutex mutex_;
  Connection connection_;
  std::optional<Error> ended_;  // as who read has heard; the door's thread does not know yet
  bool own_ = false;            // the door's thread has the role
  Waiter* reader_ = nullptr;    // has it; it is one of those that wait
  bool alarmed_ = false;
  bool closed_ = false;
  std::vector<Waiter*> waiters_;  // in the order in which they came
  std::vector<std::function<void()>> later_;
  std::atomic<std::thread::id> handler_{};  // nobody's: nothing is handled just now
  std::condition_variable idle_;            // that, or nobody but the door's thread reads
};

}  // namespace monarch
