#pragma once

// WordBudget: how many things a host says are told to people within a minute. Each is kept, in the journal and in the
// log, and no host makes us write more than so much (I22). What is not told is still known: status shows what is now.
//
// Thread: a value.

#include <cstdint>

#include "transport/base/time.h"

namespace monarch {

class WordBudget {
 public:
  static constexpr std::uint32_t kAMinute = 16;

  // False: it is one too many.
  bool take(Instant now) {
    if (now >= minute_ + Duration::seconds(60)) {
      minute_ = now;
      told_ = 0;
    }
    if (told_ == kAMinute) return false;
    ++told_;
    return true;
  }

 private:
  Instant minute_;  // when it began
  std::uint32_t told_ = 0;
};

}  // namespace monarch
