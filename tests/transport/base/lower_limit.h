#pragma once

// LowerLimit: while it lives, this process may have less of something.
//
// Thread: the test's.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>

#include "transport/base/result.h"
#include "transport/base/sanitizers.h"

namespace monarch {

// WARNING: undefined's `vptr` check looks through a pipe at an object whose type it meets for the first time
// (compiler-rt's IsAccessibleMemoryRange), and without a descriptor for one takes it for no object.
inline constexpr bool kWorksWithoutDescriptors = !kSanitized || kThreadSanitizer;
inline constexpr const char* kWantsDescriptors = "the sanitizer's own checks want descriptors that are none";

class LowerLimit {
 public:
  LowerLimit(__rlimit_resource which, rlim_t most) : which_(which) {
    // Errors are worded by an object of the standard library, which such a check would meet without a descriptor.
    (void)system_word(ENOENT);
    EXPECT_EQ(::getrlimit(which_, &before_), 0);
    const rlimit lower{.rlim_cur = most, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(which_, &lower), 0);
  }
  LowerLimit(const LowerLimit&) = delete;
  LowerLimit& operator=(const LowerLimit&) = delete;
  ~LowerLimit() { EXPECT_EQ(::setrlimit(which_, &before_), 0); }

 private:
  const __rlimit_resource which_;
  rlimit before_{};
};

}  // namespace monarch
