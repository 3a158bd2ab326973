#include "transport/base/files/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "transport/base/files/open_below.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

constexpr std::size_t kDepth = 512;  // each level holds a descriptor; what lies deeper stays, and is told

Status remove_below(int folder, const std::string& name, std::size_t depth);

// Of a folder that its owner may not even read.
UniqueFd open_folder(int folder, const std::string& name) {
  UniqueFd opened(::openat(folder, name.c_str(), kOpenFolder));
  if (opened.valid() || errno != EACCES) return opened;
  if (::fchmodat(folder, name.c_str(), 0700, 0) != 0) return opened;
  return UniqueFd(::openat(folder, name.c_str(), kOpenFolder));
}

Status empty_folder(UniqueFd folder, const std::string& name, std::size_t depth) {
  const int fd = folder.get();
  (void)::fchmod(fd, 0700);  // what may not be written to cannot be emptied; the removal tells
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(fd), ::closedir);
  if (!listing) return errno_error(text("reading ", printable(name)), errno);
  (void)folder.release();  // the listing's now
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = ::readdir(listing.get()); errno = 0) {
    const std::string found = entry->d_name;
    if (found != "." && found != "..") names.push_back(found);
  }
  if (errno != 0) return errno_error(text("reading ", printable(name)), errno);
  Status first;
  for (const std::string& each : names) {
    Status removed = remove_below(fd, each, depth + 1);
    if (!removed.ok() && first.ok()) first = std::move(removed);
  }
  return first;
}

Status remove_below(int folder, const std::string& name, std::size_t depth) {
  if (::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR && errno != EPERM) return errno_error(text("removing ", printable(name)), errno);
  if (depth == kDepth) return Error{ErrorCode::kInvalid, text(printable(name), " lies too deep")};
  UniqueFd opened = open_folder(folder, name);
  if (!opened.valid()) return errno_error(text("removing ", printable(name)), errno);
  MONARCH_TRY(empty_folder(std::move(opened), name, depth));
  if (::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  return errno_error(text("removing ", printable(name)), errno);
}

}  // namespace

Status remove_tree(int folder, const std::string& name) { return remove_below(folder, name, 0); }

}  // namespace monarch
