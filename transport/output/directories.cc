#include "transport/output/directories.h"

#include <sys/stat.h>

#include <cerrno>

#include "transport/base/text.h"

namespace monarch {

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

}  // namespace monarch
