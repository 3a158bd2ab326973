#include "worker/errand/digest_main.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "transport/base/exit_code.h"
#include "transport/base/result.h"
#include "transport/base/sha256.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

constexpr std::size_t kDigestReadBytes = 65'536;

Result<std::string> digest(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return errno_error(text("open ", printable(path)), errno);
  Sha256 hash;
  std::array<char, kDigestReadBytes> bytes{};
  for (;;) {
    const ssize_t got = ::read(file.get(), bytes.data(), bytes.size());
    if (got < 0) return errno_error(text("read ", printable(path)), errno);
    if (got == 0) return hash.finish();
    hash.add({bytes.data(), static_cast<std::size_t>(got)});
  }
}

}  // namespace

int digest_main(const std::string& path) {
  const auto digits = digest(path);
  const std::string line = digits.ok() ? *digits + '\n' : text("monarch-worker digest: ", digits.error().message, '\n');
  const int fd = digits.ok() ? STDOUT_FILENO : STDERR_FILENO;
  const bool written = ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  return digits.ok() && written ? kExitOk : kExitFailed;
}

}  // namespace monarch
