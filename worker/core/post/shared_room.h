#pragma once

// SharedRoom: room for calls that several hosts have a part of, in calls and in bytes, and how much each has of it. A
// host may have as much as it leaves to others: half of all where it is alone, a third each where there are two, and
// so on; whoever comes finds room, and all together never have more than there is. (A vault lets those that have more
// than an equal part have all, and drops copies of theirs when others come; a call that a rank was given stays.)
//
// Thread: a value; pure.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "transport/base/assert.h"

namespace monarch {

struct RoomAmount {
  std::size_t calls = 0;
  std::uint64_t bytes = 0;
};

template <class Who>
class SharedRoom {
 public:
  // `share`: a host may have so many times what it leaves.
  explicit SharedRoom(const RoomAmount& most, std::size_t share = 1) : most_(most), share_(share) {}

  // One call alone of each may have more bytes.
  bool has_room(const Who& who, std::uint64_t bytes) const {
    const RoomAmount had = of(who);
    const std::size_t calls_left = most_.calls - std::min(most_.calls, all_.calls);
    const std::uint64_t bytes_left = most_.bytes - std::min(most_.bytes, all_.bytes);
    return had.calls < share_ * calls_left && (had.calls == 0 || had.bytes + bytes <= share_ * bytes_left);
  }
  void add(const Who& who, std::uint64_t bytes) {
    for (RoomAmount* const amount : {&had_[who], &all_}) {
      amount->calls += 1;
      amount->bytes += bytes;
    }
  }
  void remove(const Who& who, std::uint64_t bytes) {
    const auto found = had_.find(who);
    MONARCH_ASSERT(found != had_.end());
    for (RoomAmount* const amount : {&found->second, &all_}) {
      amount->calls -= 1;
      amount->bytes -= bytes;
    }
    if (found->second.calls == 0) had_.erase(found);
  }
  RoomAmount of(const Who& who) const {
    const auto found = had_.find(who);
    return found == had_.end() ? RoomAmount{} : found->second;
  }
  bool is_empty() const { return had_.empty(); }

 private:
  RoomAmount most_;
  std::size_t share_;
  RoomAmount all_;
  std::map<Who, RoomAmount> had_;
};

}  // namespace monarch
