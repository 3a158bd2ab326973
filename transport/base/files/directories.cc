#include "transport/base/files/directories.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr mode_t kOthersWrite = 022;

// errno says why where it fails.
Status make_level(const std::string& level) {
  if (::mkdir(level.c_str(), 0700) == 0 || errno == EEXIST) return {};
  const int error = errno;
  // A parent that may not be written to, and need not be (EROFS, EACCES before EEXIST on some file systems).
  struct stat status {};
  if (::stat(level.c_str(), &status) == 0) return {};
  Error told = errno_error(text("mkdir ", printable(level)), error);
  errno = error;
  return told;
}

Status check_level(const std::string& level) {
  struct stat status {};
  if (::lstat(level.c_str(), &status) != 0) return errno_error(text("looking at ", printable(level)), errno);
  // One's own link leads where one wants it: to a larger disk, say. It has to lead to a folder of ours all the same.
  if (S_ISLNK(status.st_mode) && status.st_uid == ::geteuid() && ::stat(level.c_str(), &status) != 0) {
    return errno_error(text("following ", printable(level)), errno);
  }
  if (S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & kOthersWrite) == 0) return {};
  return Error{ErrorCode::kInvalid,
               text(printable(level), " is not a folder that is ours and that nobody else may write to")};
}

bool is_absolute(const std::string& path) { return !path.empty() && path.front() == '/'; }

}  // namespace

Status make_directories(const std::string& path) {
  if (!is_absolute(path)) return Error{ErrorCode::kInvalid, text("not an absolute path: '", printable(path), "'")};
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    MONARCH_TRY(make_level(path.substr(0, end)));
    if (end == std::string::npos) return {};
  }
}

Status make_own_directories(const std::string& path, std::size_t levels) {
  if (!is_absolute(path)) return make_directories(path);  // which says so
  std::string above = path;
  for (std::size_t level = 0; level < levels && !above.empty(); ++level) above.erase(above.rfind('/'));
  if (!above.empty()) MONARCH_TRY(make_directories(above));
  for (std::size_t end = above.size(); end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    MONARCH_TRY(make_level(path.substr(0, end)));
    MONARCH_TRY(check_level(path.substr(0, end)));
  }
  return {};
}

}  // namespace monarch
