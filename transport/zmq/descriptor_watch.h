#pragma once

// DescriptorWatch: keeps the last descriptors of a process that others dial for what it has to do (a supervisor's
// journal, viewers and launches; a post's calls). When few are free it closes its ports to new connections, and opens
// them when there are more: who is connected stays, and no listener of libzmq spins for want of a descriptor. Some it
// holds itself, and gives them up for whoever comes to a socket of the process's own when there is none: what takes
// them faster than it looks keeps no operator and no rank out.
//
// Thread: a loop's. Lifetime: shorter than the loop's.

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/zmq/listener_door.h"

namespace monarch {

struct DescriptorUse {
  std::size_t open = 0;
  std::size_t limit = 0;
  std::size_t left() const { return open < limit ? limit - open : 0; }
  // So many are kept: 64, or an eighth of a small limit.
  std::size_t reserve() const;
};

// Whether descriptors are scarce, given whether they were: there have to be half as many again before they no longer
// are.
bool are_scarce(const DescriptorUse& use, bool were);

// Of this process now. Nothing: it could not be found out, mostly for want of a descriptor.
std::optional<DescriptorUse> descriptor_use();

class DescriptorWatch {
 public:
  struct Handlers {
    std::function<void(const DescriptorUse&)> on_scarce;
    std::function<void(const DescriptorUse&)> on_enough;
  };

  DescriptorWatch(EventLoop& loop, std::vector<ListenerDoor> doors, Handlers handlers);
  ~DescriptorWatch();
  DescriptorWatch(const DescriptorWatch&) = delete;
  DescriptorWatch& operator=(const DescriptorWatch&) = delete;

  // Closes the ports, now, and gives up a descriptor that it held. False: it has none left.
  bool make_room();
  // Connections that were ended unheard.
  std::size_t turned_away() const { return turned_away_; }

 private:
  void look();
  void close_doors();
  void fill_reserve(const DescriptorUse& use);

  EventLoop& loop_;
  std::vector<ListenerDoor> doors_;
  Handlers handlers_;
  UniqueFd spare_;                 // to look when there is none besides
  std::vector<UniqueFd> reserve_;  // for sockets of its own
  bool scarce_ = false;
  std::size_t turned_away_ = 0;
  Instant quick_until_ = {};
  TimerId timer_ = 0;
};

}  // namespace monarch
