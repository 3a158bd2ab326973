#pragma once

// LogSize: a log has a size, whatever is said and by whom. Where it is a file that was opened for reading and
// appending, as those of ours are, whoever writes when it is full drops all but the newest part of it; its first line
// then counts what was dropped. Several processes may share it. What somebody redirected us to is his, and grows.
//
// Thread: before the first one.

#include <cstdint>

namespace monarch {

struct LogSize {
  std::uint64_t most = 16U << 20U;  // bytes
  std::uint64_t kept = 4U << 20U;   // where it has more
};

// For logs that are started after this; a test's.
void log_set_size(const LogSize& size);

}  // namespace monarch
