#include "transport/base/directories.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr mode_t kOthersWrite = 022;

}  // namespace

Status make_directories(const std::string& path) {
  if (path.empty() || path.front() != '/') {
    return Error{ErrorCode::kInvalid, text("not an absolute path: '", printable(path), "'")};
  }
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string level = path.substr(0, end);
    if (::mkdir(level.c_str(), 0700) != 0 && errno != EEXIST) {
      const int error = errno;
      // A parent that may not be written to, and need not be (EROFS, EACCES before EEXIST on some file systems).
      struct stat status {};
      if (::stat(level.c_str(), &status) != 0) return errno_error(text("mkdir ", level), error);
    }
    if (end == std::string::npos) return {};
  }
}

Status check_directories(const std::string& path, std::size_t levels) {
  std::string folder = path;
  for (std::size_t level = 0; level < levels && !folder.empty(); ++level) {
    struct stat status {};
    if (::lstat(folder.c_str(), &status) != 0) return errno_error(text("looking at ", printable(folder)), errno);
    if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & kOthersWrite) != 0) {
      return Error{ErrorCode::kInvalid,
                   text(printable(folder), " is not a folder that is ours and that nobody else may write to")};
    }
    folder.erase(folder.rfind('/'));
  }
  return {};
}

}  // namespace monarch
