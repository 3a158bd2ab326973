// Reading a spec's file, with every refusal that a path can earn.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "supervisor/spec/spec.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

// A little more than a spec may have, a byte order mark included: what load_spec then refuses was not cut.
constexpr std::size_t kMostRead = limits::kSpecBytes + 4;

Result<std::string> read_all(int fd, const std::string& what) {
  std::string bytes(kMostRead, '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::read(fd, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(what, errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace

Result<SpecSource> read_spec_file(const std::string& path) {
  const std::string shown = printable(path);
  const std::string what = text("cannot read the spec ", shown);
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait; it is refused below.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return errno_error(what, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(what, errno);
  if (!S_ISREG(status.st_mode)) {
    const std::string kind = S_ISDIR(status.st_mode) ? "it is a folder" : "it is not a regular file";
    return Error{ErrorCode::kInvalid, text(what, ": ", kind)};
  }
  MONARCH_ASSIGN(std::string bytes,
                 read_all(fd.get(), what));  // the size of fstat may be out of date: what is read counts
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  if (error) return errno_error(text(what, ": the working directory"), error.value());
  const std::string directory = whole.lexically_normal().parent_path().string();
  return SpecSource{.name = path, .text = std::move(bytes), .directory = directory};
}

}  // namespace monarch
