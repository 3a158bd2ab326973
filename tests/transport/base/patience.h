#pragma once

// test_patience(): how much longer than on the machine for which limits are written something takes here, as the runner
// has measured it (MONARCH_TEST_PATIENCE); 1 where nobody has.
//
// Thread: any.

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "transport/base/time.h"

namespace monarch {

inline Duration test_patience(Duration limit) {
  const char* const told = std::getenv("MONARCH_TEST_PATIENCE");
  const double factor = told == nullptr ? 1.0 : std::clamp(std::strtod(told, nullptr), 1.0, 16.0);
  return Duration::milliseconds(static_cast<std::int64_t>(static_cast<double>(limit.count_milliseconds()) * factor));
}

}  // namespace monarch
