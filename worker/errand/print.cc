#include "worker/errand/print.h"

#include <unistd.h>

#include <cerrno>

namespace monarch {

void print(int fd, std::string_view words) {
  while (!words.empty()) {
    const ssize_t written = ::write(fd, words.data(), words.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // nobody reads any more
    words.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace monarch
