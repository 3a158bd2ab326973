#pragma once

// GroupNews: what becomes of one call for a group, told by the owner's thread to whoever waits for it: whose card is
// wanted, for whom it waits, the epoch, and that this is lost. What is said once stays said, but that words on a loss
// may give way to better ones.
//
// Thread: any. Owners: who has called, and the owner's thread.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/tensor/core/group.h"

namespace monarch::tensor {

class GroupNews {
 public:
  struct Question {  // for the card of the first, of a generation after that
    std::uint64_t number = 0;
    std::uint64_t since = 0;
  };
  struct Told {
    Question question;  // 0: none yet
    std::string waits;  // for whom, in words
    std::optional<Error> refused;
    std::optional<GroupMeeting> meeting;
    std::optional<std::string> lost;
    bool left = false;  // by who has called
  };

  template <class Change>
  void tell(Change change) {
    {
      const std::lock_guard lock(mutex_);
      change(told_);
    }
    changed_.notify_all();
  }
  Told told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  // Until it holds, or that time. What was told then.
  template <class Until>
  Told wait(Until holds, Instant until) {
    std::unique_lock lock(mutex_);
    while (!holds(std::as_const(told_))) {
      const Instant now = boot_now();
      if (now >= until) break;
      // Bounded: the condition's clock stands still while the machine is suspended.
      const Duration wait = std::min(until - now, kLook);
      changed_.wait_for(lock, std::chrono::nanoseconds(wait.count_nanoseconds()));
    }
    return told_;
  }

 private:
  static constexpr Duration kLook = Duration::seconds(5);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Told told_;
};

using GroupNewsPtr = std::shared_ptr<GroupNews>;

}  // namespace monarch::tensor
