#pragma once

// SecondLook: asks by other ways than its heartbeats what is the matter with a host over SSH that is suspected: it
// opens a session of its own to the host, and one to each of some hosts that are heard, and has `monarch-worker check`
// look there. Nothing is changed by it. What came within its time is told, once; what follows is others' to decide.
//
// A host is not looked at again for a while: in bad weather a host may be suspected every other second.
//
// Thread: the supervisor's loop; sessions have threads of their own (SshPool). Lifetime: shorter than the loop's.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/core/health/second_path.h"
#include "supervisor/launch/fair_timer.h"
#include "supervisor/launch/launcher.h"
#include "supervisor/launch/ssh/ssh_access.h"
#include "supervisor/launch/ssh/ssh_pool.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/loop/event_loop.h"

namespace monarch {

struct SecondLookOptions {
  JobUuid job;
  SshAccess access;
  std::string address;                       // by which hosts reach us; empty: that of the session
  std::uint16_t port = 0;                    // where; 0: they do not come by themselves
  Duration patience = Duration::seconds(2);  // with all of a look
  Duration again_after = Duration::seconds(10);
  std::uint64_t seed = 0;
};

class SecondLook {
 public:
  using OnSeen = std::function<void(HostId, SecondPath)>;

  static Result<std::unique_ptr<SecondLook>> create(EventLoop& loop, SecondLookOptions options, OnSeen on_seen);
  SecondLook(const SecondLook&) = delete;
  SecondLook& operator=(const SecondLook&) = delete;

  using Peer = LookPeer;
  void look(HostId host, const std::vector<Peer>& peers);
  // It was heard again, or is given up: nothing is told of a look that is under way.
  void forget(HostId host);

 private:
  struct Look {
    std::uint64_t number = 0;
    SecondPath seen;
    std::size_t open = 0;  // sessions
    std::vector<SshPool::Ticket> tickets;
    std::unique_ptr<FairTimer> timer;
  };

  SecondLook(EventLoop& loop, SecondLookOptions options, OnSeen on_seen)
      : loop_(loop), options_(std::move(options)), on_seen_(std::move(on_seen)) {}
  SshRoute route_of(HostId host) const;
  RemoteOrder order_of(HostId host) const;
  SshPool::Ticket ask_there(HostId host, std::uint64_t number);
  SshPool::Ticket ask_peer(HostId host, std::uint64_t number, std::size_t place, const Peer& peer);
  // Of the look with this number, if it is still under way.
  void answered(HostId host, std::uint64_t number, const std::function<void(SecondPath&)>& note);
  std::string no_answer() const;
  void tell(HostId host);
  void time_is_up(HostId host, const std::string& late);

  EventLoop& loop_;
  SecondLookOptions options_;
  OnSeen on_seen_;
  std::uint64_t next_ = 1;
  std::map<HostId, Look> looks_;
  std::map<HostId, Instant> looked_;  // when, last
  std::unique_ptr<SshPool> pool_;
};

}  // namespace monarch
