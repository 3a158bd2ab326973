#include "supervisor/launch/ssh/shipped.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <optional>
#include <utility>

#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

using FileTime = std::pair<std::int64_t, std::int64_t>;

std::optional<FileTime> written(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) return std::nullopt;
  return FileTime(status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

}  // namespace

std::string shipped_monarch(const std::string& monarch) {
  std::string beside = monarch + ".shipped";
  const auto shipped = written(beside);
  // An older one is of a build before this.
  return shipped && shipped >= written(monarch) ? beside : monarch;
}

}  // namespace monarch
