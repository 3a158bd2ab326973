#include "transport/base/machine.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>

#include "transport/base/assert.h"
#include "transport/base/unique_fd.h"

namespace monarch {

std::string read_boot_id() {
  constexpr std::size_t kBootIdBytes = 36;
  std::array<char, kBootIdBytes> buffer{};
  const UniqueFd fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  const ssize_t n = fd.valid() ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
  return std::string(buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
}

// So few are never cut short, and the pool is ready long before any user logs in (getrandom(2)).
std::string random_bytes(std::size_t count) {
  constexpr std::size_t kMost = 256;
  MONARCH_ASSERT(count <= kMost);
  std::string bytes(count, '\0');
  MONARCH_ASSERT(::getrandom(bytes.data(), count, 0) == static_cast<ssize_t>(count));
  return bytes;
}

}  // namespace monarch
