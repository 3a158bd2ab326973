#include "supervisor/journal/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kDeepest = 32;                // a job's folder has three levels
constexpr std::uint64_t kBlockBytes = 512;  // of st_blocks (stat(2))

enum class Act : std::uint8_t { kMeasure, kRemove };

Result<std::vector<std::string>> names_in(int folder, const std::string& path) {
  // fdopendir() takes its descriptor over, and a copy shares the position.
  UniqueFd copy(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy.valid()) return errno_error(text("open ", path), errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(copy.get()), ::closedir);
  if (entries == nullptr) return errno_error(text("list ", path), errno);
  (void)copy.release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(entries.get());
    if (entry == nullptr && errno != 0) return errno_error(text("list ", path), errno);
    if (entry == nullptr) return names;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
}

class Walk {
 public:
  Walk(Act act, dev_t device) : act_(act), device_(device) {}

  Status folder(int parent, const std::string& name, const std::string& path, int depth) {
    if (depth > kDeepest) return Error{ErrorCode::kInvalid, text(path, " is nested too deeply to be ours")};
    const UniqueFd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) return errno_error(text("open ", path), errno);
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return errno_error(text("stat ", path), errno);
    if (status.st_dev != device_) {
      return Error{ErrorCode::kInvalid, text("another file system is mounted at ", path, ": unmount it first")};
    }
    MONARCH_ASSIGN(const std::vector<std::string> names, names_in(fd.get(), path));
    for (const std::string& entry : names) MONARCH_TRY(one(fd.get(), entry, text(path, "/", printable(entry)), depth));
    count(status);
    if (act_ == Act::kMeasure || ::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0) return {};
    return errno_error(text("remove ", path), errno);
  }

  const TreeSize& size() const { return size_; }

 private:
  Status one(int parent, const std::string& name, const std::string& path, int depth) {
    struct stat status {};
    if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return errno == ENOENT ? Status() : errno_error(text("stat ", path), errno);  // gone since it was listed
    }
    if (S_ISDIR(status.st_mode)) return folder(parent, name, path, depth + 1);
    count(status);
    if (act_ == Act::kMeasure || ::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return {};
    return errno_error(text("remove ", path), errno);
  }

  void count(const struct stat& status) {
    ++size_.entries;
    size_.bytes += static_cast<std::uint64_t>(status.st_blocks) * kBlockBytes;
  }

  Act act_;
  dev_t device_;
  TreeSize size_;
};

Result<TreeSize> walk(const SecureDirectory& parent, const std::string& name, Act act) {
  struct stat status {};
  if (::fstat(parent.fd(), &status) != 0) return errno_error(text("stat ", parent.path()), errno);
  Walk walk(act, status.st_dev);
  MONARCH_TRY(walk.folder(parent.fd(), name, text(parent.path(), "/", name), 0));
  return walk.size();
}

}  // namespace

Result<TreeSize> measure_tree(const SecureDirectory& parent, const std::string& name) {
  return walk(parent, name, Act::kMeasure);
}

Result<TreeSize> remove_tree(const SecureDirectory& parent, const std::string& name) {
  return walk(parent, name, Act::kRemove);
}

}  // namespace monarch
