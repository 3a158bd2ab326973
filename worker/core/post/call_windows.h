#pragma once

// CallWindows: how much of a caller may be under way at one actor of a rank. What is more waits here, in order, so that
// a slow actor holds up nobody but who waits for it; it goes once something before it has ended.
//
// Thread: a value of the core's; pure.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/core/post/call_table.h"
#include "worker/core/post/delivery_table.h"
#include "worker/core/post/post_limits.h"

namespace monarch {

class CallWindows {
 public:
  // A rank's part of a call.
  struct Part {
    CallKey call;
    Rank rank;
    SharedContent content;
  };

  explicit CallWindows(const PostLimits& limits) : limits_(limits) {}

  // True: it goes now. Else it is among take_ready() some time, unless it ends before.
  bool enter(const Part& part);
  // Of a part that did not enter it is nothing.
  void ended(const CallKey& call, Rank rank);
  // What a caller had, who has left.
  void left(DoorId door);
  // Those that go now.
  std::vector<Part> take_ready() { return std::exchange(ready_, {}); }
  std::size_t size() const { return parts_.size(); }

 private:
  struct Target {
    DoorId door;
    RankId rank;
    std::optional<HostId> host;  // of a guest: whose
    std::string actor;
    auto operator<=>(const Target&) const = default;
  };
  struct Window {
    std::size_t calls = 0;  // under way
    std::uint64_t bytes = 0;
    std::map<std::uint64_t, Part> waiting;  // in order
  };
  struct Place {
    Target target;
    std::uint64_t bytes = 0;
    std::optional<std::uint64_t> waits;  // its number among those that wait
  };
  bool has_room(const Window& window, std::uint64_t bytes) const;
  void let_go(Window& window);

  const PostLimits limits_;
  std::map<Target, Window> windows_;
  std::map<std::pair<CallKey, Rank>, Place> parts_;
  std::uint64_t next_ = 1;
  std::vector<Part> ready_;
};

}  // namespace monarch
