#include "transport/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace monarch {

// Weak, for the simulator has one of its own.
[[gnu::weak]] void assertion_failed(const char* expression, const char* file, int line, const char* why) {
  std::fprintf(stderr, "monarch: internal error: %s:%d: assertion failed: %s%s%s\n", file, line, expression,
               *why != '\0' ? ": " : "", why);
  std::abort();
}

}  // namespace monarch
