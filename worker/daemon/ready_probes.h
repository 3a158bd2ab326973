#pragma once

// ReadyProbes: ranks of a mesh with `ready: {tcp: PORT}` are ready once something accepts connections at their port.
// Each is tried with a connection that is closed again at once, at the host's own address and at loopback's, ever more
// seldom.
//
// Thread: the loop's. Lifetime: shorter than the loop's; its handler may not destroy it.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "worker/core/keeper_actions.h"

namespace monarch::daemon {

class ReadyProbes {
 public:
  using OnReady = std::function<void(const Incarnation&)>;

  // `addresses` are numeric; one that is none is passed over.
  ReadyProbes(EventLoop& loop, std::vector<std::string> addresses, OnReady on_ready)
      : loop_(loop), addresses_(std::move(addresses)), on_ready_(std::move(on_ready)) {}
  ~ReadyProbes();
  ReadyProbes(const ReadyProbes&) = delete;
  ReadyProbes& operator=(const ReadyProbes&) = delete;

  // Until it accepts, which is told once; nothing where it is tried already.
  void begin(const Incarnation& key, std::uint16_t port);
  void end(const Incarnation& key);

 private:
  struct Probe {
    std::uint16_t port = 0;
    std::size_t address = 0;  // the one that is tried
    UniqueFd socket;
    WatchId watch = 0;
    TimerId timer = 0;  // of the attempt, of the wait for the next round
    Duration wait;
  };

  void attempt(const Incarnation& key);
  void settle(const Incarnation& key);
  void refused(const Incarnation& key);
  void accepted(const Incarnation& key);
  void clear(Probe& probe);

  EventLoop& loop_;
  std::vector<std::string> addresses_;
  OnReady on_ready_;
  std::map<Incarnation, Probe> probes_;
};

}  // namespace monarch::daemon
