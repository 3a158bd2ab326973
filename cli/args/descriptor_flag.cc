#include "cli/args/descriptor_flag.h"

#include <fcntl.h>

#include <charconv>

namespace monarch {

namespace {

// WARNING: asked before anything is opened here. The guard hands out the ready pipe at the first start alone; later its
// number would be that of some descriptor of our own.
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

}  // namespace

std::optional<int> descriptor_of(const std::string& number) {
  int fd = -1;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), fd);
  if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size() || fd < 3 || !is_open(fd))
    return std::nullopt;
  return fd;
}

int descriptor_count(const std::string& number) {
  constexpr int kMost = 16;
  int count = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), count);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == number.data() + number.size();
  return is_number && count > 0 && count <= kMost ? count : 0;
}

}  // namespace monarch
