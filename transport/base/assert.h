#pragma once

// MONARCH_ASSERT: an invariant of ours, checked in every build. A broken one prints where and why and aborts: going on
// wrong is worse than stopping, since a guard starts the process again. It is not for input from outside: that is
// Result.

namespace monarch {

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line, const char* why);

}  // namespace monarch

#define MONARCH_ASSERT(expression) \
  (static_cast<bool>(expression) ? void(0) : ::monarch::assertion_failed(#expression, __FILE__, __LINE__, ""))

// `why` cites the invariant, as in MONARCH_ASSERT_BECAUSE(next > last, "I4: a generation is used once").
#define MONARCH_ASSERT_BECAUSE(expression, why) \
  (static_cast<bool>(expression) ? void(0) : ::monarch::assertion_failed(#expression, __FILE__, __LINE__, why))
