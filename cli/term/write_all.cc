#include "cli/term/write_all.h"

#include <unistd.h>

#include <cerrno>

namespace monarch {

int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const long wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? errno : ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return 0;
}

Status write_all(int fd, std::string_view bytes, const std::string& what) {
  const int error = write_all(fd, bytes);
  if (error != 0) return errno_error(what, error);
  return {};
}

}  // namespace monarch
