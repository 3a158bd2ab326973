#include "cli/start/tied_descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "transport/base/text.h"

namespace monarch {

namespace {

std::string kind_of(mode_t mode) {
  if (S_ISREG(mode)) return "a file";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISCHR(mode)) return "a device";
  return "something else";
}

}  // namespace

Result<int> tied_descriptor(const std::string& written) {
  int fd = -1;
  const char* end = written.data() + written.size();
  const auto parsed = std::from_chars(written.data(), end, fd);
  if (parsed.ec != std::errc() || parsed.ptr != end || fd <= STDERR_FILENO) {
    return Error{ErrorCode::kInvalid, text("`", printable(written), "` is not the number of a descriptor from 3 on")};
  }
  struct stat what {};
  if (::fstat(fd, &what) != 0) return Error{ErrorCode::kInvalid, text("descriptor ", fd, " is not open")};
  if (!S_ISFIFO(what.st_mode) && !S_ISSOCK(what.st_mode)) {
    return Error{ErrorCode::kInvalid,
                 text("descriptor ", fd, " is ", kind_of(what.st_mode), ", and neither a pipe nor a socket")};
  }
  // Of a pipe that is written to from here the end would never come.
  if (S_ISFIFO(what.st_mode) && (::fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY) {
    return Error{ErrorCode::kInvalid,
                 text("descriptor ", fd, " is the writing end of a pipe, which is the program's alone")};
  }
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return errno_error(text("descriptor ", fd), errno);
  return fd;
}

}  // namespace monarch
