#pragma once

// ActorThread: an actor of this rank and its thread. It is made, run and destroyed there. It has one call at a time, in
// the order in which they came; a concurrent endpoint runs beside all others on threads that are made as they are
// needed, at most as many as it says. Its calls wait for each other alone, and begin in the order in which they came.
// While it has nothing to do, its thread may be the one that reads what the post gives it.
//
// Thread: the owner's; put() and take_out() any. Lifetime: the destructor waits for what runs; what waits is answered
// that it is not run.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <monarch/plugin_v1.h>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "worker/rank/door_client.h"
#include "worker/rank/door_thread.h"

namespace monarch {

class ActorThread {
 public:
  struct Run {
    const monarch_endpoint_v1* endpoint = nullptr;
    DoorBody arguments;
    monarch_delivery_v1* delivery = nullptr;
  };

  // Once it is made. The error is what its constructor let out. `place` is read until then.
  static Result<std::unique_ptr<ActorThread>> make(const monarch_class_v1& of, const monarch_host_v1& host,
                                                   const monarch_place_v1& place);
  ActorThread(const ActorThread&) = delete;
  ActorThread& operator=(const ActorThread&) = delete;
  ~ActorThread();

  // What runs on the thread that asks, where it is an actor's own; of a concurrent endpoint nothing waits for it alone.
  struct Present {
    const std::string* actor = nullptr;  // its name
    std::uint64_t delivery = 0;          // as the post counts them; 0: it is being made
  };
  static Present present();

  const monarch_class_v1& of() const { return of_; }
  // nullptr: it has none of that name.
  const monarch_endpoint_v1* find(const std::string& endpoint) const;
  // All calls of this rank are for it, and come by that door, which lives until the thread has ended: it reads there,
  // unless some of its calls run beside others.
  void read_at(DoorThread& door);
  void put(Run run);
  // False: it has begun, or was never there.
  bool take_out(const monarch_delivery_v1* delivery);
  void begin_stop();
  // Waits for what runs, and destroys the actor; put() and take_out() may still be called. False: not within
  // `patience`; it goes on.
  bool join(Duration patience = Duration::forever());

 private:
  ActorThread(const monarch_class_v1& of, const monarch_host_v1& host, std::string name)
      : of_(of), host_(host), name_(std::move(name)) {}
  void live(const monarch_place_v1& place);
  void refuse(const Run& run) const;
  // What waits, in the order in which it came.
  using Queue = std::map<std::uint64_t, Run>;
  // A concurrent endpoint's.
  struct Lane {
    Queue waiting;
    std::uint32_t running = 0;
  };
  void serve(std::unique_lock<std::mutex>& lock);
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void help();
  // That of those that may begin beside all others which came first; nullptr: there is none.
  Lane* next_lane();
  // Where the actor's own thread takes the next one; nullptr: it has nothing to do.
  Queue* next_own();
  // It has begun once this returns.
  Run take_first(Queue& queue);
  // Somebody is there to begin what may begin beside all others.
  void summon();
  void invoke(const Run& run, std::unique_lock<std::mutex>& lock);

  const monarch_class_v1& of_;
  const monarch_host_v1& host_;
  const std::string name_;
  void* actor_ = nullptr;  // its own thread's, and its helpers'
  std::mutex mutex_;
  std::condition_variable changed_;  // anything of what follows
  DoorThread* door_ = nullptr;       // that it reads
  bool made_ = false;
  std::string why_not_;  // it could not be made
  bool stopping_ = false;
  bool ended_ = false;  // and destroyed
  std::uint64_t came_ = 0;
  Queue waiting_;                                     // one at a time
  std::map<const monarch_endpoint_v1*, Lane> lanes_;  // the others
  std::size_t idle_helpers_ = 0;
  bool alone_ = false;  // no thread is to be had just now: what should overlap does not
  bool told_ = false;   // of that
  std::vector<std::thread> helpers_;
  std::thread thread_;
};

}  // namespace monarch
