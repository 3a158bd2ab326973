#pragma once

// What makes starting a thread fail while it lives: no descriptor may be opened, or no thread can have its stack.
//
// Thread: the test's.

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>

#include "tests/transport/base/lower_limit.h"

namespace monarch {

class NoDescriptors {
 private:
  const LowerLimit none_{RLIMIT_NOFILE, 0};
};

class NoStacks {
 public:
  NoStacks() {
    EXPECT_EQ(::pthread_getattr_default_np(&before_), 0);
    pthread_attr_t none;
    EXPECT_EQ(::pthread_getattr_default_np(&none), 0);
    EXPECT_EQ(::pthread_attr_setstacksize(&none, kBeyondAllMemory), 0);
    EXPECT_EQ(::pthread_setattr_default_np(&none), 0);
    EXPECT_EQ(::pthread_attr_destroy(&none), 0);
  }
  NoStacks(const NoStacks&) = delete;
  NoStacks& operator=(const NoStacks&) = delete;
  ~NoStacks() {
    EXPECT_EQ(::pthread_setattr_default_np(&before_), 0);
    EXPECT_EQ(::pthread_attr_destroy(&before_), 0);
  }

 private:
  static constexpr std::size_t kBeyondAllMemory = std::size_t{1} << 60U;

  pthread_attr_t before_{};
};

}  // namespace monarch
