#pragma once

// Injector: has faults injected on hosts that SSH reaches, each in a session of its own, which stays as long as the
// fault lasts: when it ends, however it does, the host takes the fault back.
//
// What took no effect is told as an error, never as a fault that was survived.
//
// Thread: the loop's. Lifetime: shorter than the loop's. Its end takes everything back, and waits for the sessions' end
// alone.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/launch/ssh/ssh_access.h"
#include "supervisor/launch/ssh/ssh_pool.h"
#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/strike.h"

namespace monarch::drill {

struct InjectorOptions {
  SshAccess access;
  Duration patience = Duration::seconds(5);  // until a fault is in effect, and until it is taken back
  std::uint64_t seed = 0;                    // of the pool's waits
};

struct Injected {
  std::string error;                 // why it took no effect; empty: it is in effect, or done
  std::vector<std::int32_t> struck;  // processes of that host
};

class Injector {
 public:
  using Ticket = std::uint64_t;
  // By the loop, once; then, where there was no error, once what came of taking it back: empty, or why it may be in
  // effect still.
  using OnInjected = std::function<void(const Injected&)>;
  using OnUndone = std::function<void(const std::string& error)>;

  static Result<std::unique_ptr<Injector>> create(EventLoop& loop, InjectorOptions options);
  Injector(const Injector&) = delete;
  Injector& operator=(const Injector&) = delete;
  ~Injector();

  // For so long; the marks of the order are of the job that is struck.
  Ticket strike(HostId host, StrikeOrder order, Duration lasts, OnInjected on_injected, OnUndone on_undone);
  // Before its time.
  void undo(Ticket ticket);

 private:
  struct Running {
    UniqueFd over;  // an eventfd
    OnInjected on_injected;
    OnUndone on_undone;
  };

  Injector(EventLoop& loop, InjectorOptions options) : loop_(loop), options_(std::move(options)) {}

  void injected(Ticket ticket, const Injected& what);
  void undone(Ticket ticket, const std::string& error);

  EventLoop& loop_;
  InjectorOptions options_;
  Ticket next_ = 1;
  std::map<Ticket, Running> running_;
  std::unique_ptr<SshPool> pool_;
};

}  // namespace monarch::drill
