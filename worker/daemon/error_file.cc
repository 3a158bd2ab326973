#include "worker/daemon/error_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "transport/base/clock.h"
#include "transport/base/unique_fd.h"

namespace monarch::daemon {
namespace {

// Not valid: there is no such file.
UniqueFd open_error_file(const std::string& path, struct stat& what) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid() || ::fstat(file.get(), &what) != 0 || !S_ISREG(what.st_mode)) return {};
  return file;
}

}  // namespace

std::string read_error_file(const std::string& path, std::size_t limit) {
  struct stat what {};
  const UniqueFd file = open_error_file(path, what);
  if (!file.valid()) return {};
  std::string content(std::min<std::size_t>(static_cast<std::size_t>(what.st_size), limit), '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::pread(file.get(), content.data() + done, content.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  content.resize(done);
  return content;
}

std::optional<Duration> age_of_error_file(const std::string& path) {
  struct stat what {};
  const UniqueFd file = open_error_file(path, what);
  if (!file.valid() || what.st_size == 0) return std::nullopt;
  const std::int64_t written = what.st_mtim.tv_sec * std::int64_t{1'000'000'000} + what.st_mtim.tv_nsec;
  const Duration age = Duration::nanoseconds(wall_now().nanoseconds_since_epoch - written);
  return std::max(age, Duration::zero());
}

}  // namespace monarch::daemon
