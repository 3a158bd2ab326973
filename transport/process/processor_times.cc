#include "transport/process/processor_times.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

#include "transport/base/text.h"
#include "transport/process/read_small.h"

namespace monarch {

std::optional<ProcessorTimes> processor_times(pid_t thread) {
  const std::string told = read_small(text("/proc/", thread, "/schedstat")).value_or("");
  std::int64_t ran = 0;
  std::int64_t waited = 0;
  const char* const end = told.data() + told.size();
  const auto first = std::from_chars(told.data(), end, ran);
  if (first.ec != std::errc() || first.ptr == end) return std::nullopt;
  if (std::from_chars(first.ptr + 1, end, waited).ec != std::errc()) return std::nullopt;
  return ProcessorTimes{Duration::nanoseconds(ran), Duration::nanoseconds(waited)};
}

}  // namespace monarch
