#include "cli/write_all.h"

#include <unistd.h>

#include <cerrno>

namespace monarch {

Status write_all(int fd, std::string_view bytes, const std::string& what) {
  while (!bytes.empty()) {
    const long wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return errno_error(what, wrote < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

}  // namespace monarch
