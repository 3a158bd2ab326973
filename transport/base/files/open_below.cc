#include "transport/base/files/open_below.h"

#include <fcntl.h>

#include <cerrno>

#include "transport/base/text.h"

namespace monarch {

std::string last_part(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

Result<UniqueFd> open_parent_below(int folder, const std::string& path) {
  UniqueFd at(::openat(folder, ".", kOpenFolder));
  for (std::size_t begin = 0; at.valid();) {
    const std::size_t end = path.find('/', begin);
    if (end == std::string::npos) return at;
    at = UniqueFd(::openat(at.get(), path.substr(begin, end - begin).c_str(), kOpenFolder));
    begin = end + 1;
  }
  return errno_error(text("opening the folder of ", printable(path)), errno);
}

Result<UniqueFd> open_below(int folder, const std::string& path, int flags, unsigned mode) {
  MONARCH_ASSIGN(const UniqueFd parent, open_parent_below(folder, path));
  const std::string name = path.empty() ? "." : last_part(path);
  UniqueFd file(::openat(parent.get(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file.valid()) return errno_error(text("opening ", printable(path)), errno);
  return file;
}

}  // namespace monarch
