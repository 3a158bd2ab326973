#include "worker/errand/blob_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "transport/base/files/directories.h"
#include "transport/base/files/open_below.h"
#include "transport/base/files/remove_tree.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kBlobFolders = 2;  // monarch/blobs
constexpr std::string_view kIncoming = "put.";
constexpr char kPart[] = "part";
constexpr char kPlace[] = "/monarch/blobs";
constexpr std::int64_t kStaleSeconds = 86'400;  // of a host that lost its power meanwhile
constexpr mode_t kOthersWrite = 022;
constexpr int kAttempts = 8;

std::string cache_home(const Environment& environment) {
  for (const auto& [name, below] : {std::pair{"XDG_CACHE_HOME", ""}, std::pair{"HOME", "/.cache"}}) {
    const auto found = environment.find(name);
    if (found != environment.end() && found->second.starts_with('/')) return found->second + below;
  }
  return "";
}

// A home may be shared: a pid alone is not one's own.
std::string own_prefix() {
  utsname node{};
  (void)::uname(&node);
  return text(kIncoming, node.nodename, '.');
}

struct Kept {
  std::string name;
  std::uint64_t size = 0;
  std::int64_t used = 0;
};

std::vector<Kept> list(int folder) {
  std::vector<Kept> kept;
  const int copy = ::openat(folder, ".", kOpenFolder);
  DIR* listing = copy < 0 ? nullptr : ::fdopendir(copy);
  if (listing == nullptr) {
    if (copy >= 0) (void)::close(copy);
    return kept;
  }
  while (const dirent* entry = ::readdir(listing)) {
    const std::string_view name = entry->d_name;
    struct stat status {};
    if (name == "." || name == "..") continue;
    if (::fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    kept.push_back(
        {.name = entry->d_name, .size = static_cast<std::uint64_t>(status.st_size), .used = status.st_mtim.tv_sec});
  }
  (void)::closedir(listing);
  return kept;
}

}  // namespace

Error disk_error(const std::string& what, int error) {
  if (error == ENOSPC || error == EDQUOT) return errno_error(ErrorCode::kBusy, what, error);
  if (error == EACCES || error == EPERM || error == EROFS) return errno_error(ErrorCode::kUnsupported, what, error);
  return errno_error(ErrorCode::kInternal, what, error);
}

Result<std::unique_ptr<BlobCache>> BlobCache::open(const Environment& environment) {
  const std::string home = cache_home(environment);
  if (home.empty()) return Error{ErrorCode::kInvalid, "there is neither HOME nor XDG_CACHE_HOME to keep files in"};
  const std::string path = text(home, kPlace);
  errno = 0;
  if (const Status made = make_own_directories(path, kBlobFolders); !made.ok()) {
    if (made.error().code == ErrorCode::kInvalid) return made.error();
    Error error = disk_error("", errno);
    error.message = made.error().message;
    return error;
  }
  UniqueFd folder(::open(path.c_str(), kOpenFolder));
  if (!folder.valid()) return disk_error(text("opening ", printable(path)), errno);
  return std::unique_ptr<BlobCache>(new BlobCache(std::move(folder), path));
}

BlobCache::~BlobCache() {
  // What is left is removed by another a day later.
  if (!incoming_name_.empty()) (void)remove_tree(folder_.get(), incoming_name_);
}

bool BlobCache::has(const TreeBlob& blob) const {
  const UniqueFd file(::openat(folder_.get(), blob.sha256.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) return false;
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & kOthersWrite) != 0) return false;
  if (static_cast<std::uint64_t>(status.st_size) != blob.size) return false;
  // When it was read is not always kept (noatime), so what is told is when it was written.
  return ::futimens(file.get(), nullptr) == 0;
}

Result<UniqueFd> BlobCache::read(const TreeBlob& blob) const {
  UniqueFd file(::openat(folder_.get(), blob.sha256.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (file.valid()) return file;
  const int why = errno;
  Error error = disk_error(text("opening ", printable(path_), '/', blob.sha256), why);
  if (why == ENOENT) error.code = ErrorCode::kNotFound;
  return error;
}

void BlobCache::forget(const TreeBlob& blob) const {
  (void)::unlinkat(folder_.get(), blob.sha256.c_str(), 0);  // what comes in its place replaces it as well
}

// Locked by whoever brings something: what nobody holds is nobody's. Between the making of a folder and its lock
// somebody may sweep.
Status BlobCache::make_incoming() {
  const std::string name = text(own_prefix(), ::getpid());
  (void)remove_tree(folder_.get(), name);  // of an earlier process of this number
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (::mkdirat(folder_.get(), name.c_str(), 0700) != 0 && errno != EEXIST) {
      return disk_error(text("mkdir ", printable(path_), '/', name), errno);
    }
    incoming_ = UniqueFd(::openat(folder_.get(), name.c_str(), kOpenFolder));
    if (!incoming_.valid() && errno == ENOENT) continue;
    if (!incoming_.valid()) return disk_error(text("opening a folder in ", printable(path_)), errno);
    // Where no locks are kept, nobody sweeps either.
    if (::flock(incoming_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
    struct stat status {};
    if (::fstat(incoming_.get(), &status) != 0 || status.st_nlink == 0) continue;
    incoming_name_ = name;
    return {};
  }
  return Error{ErrorCode::kInternal, text("somebody removes ", printable(path_), '/', name, " again and again")};
}

void BlobCache::sweep(const Environment& environment) {
  const UniqueFd folder(::open(text(cache_home(environment), kPlace).c_str(), kOpenFolder));
  struct stat status {};
  if (!folder.valid() || ::fstat(folder.get(), &status) != 0 || status.st_uid != ::geteuid()) return;
  const std::string ours = own_prefix();
  for (const Kept& each : list(folder.get())) {
    if (!each.name.starts_with(ours)) continue;
    const UniqueFd abandoned(::openat(folder.get(), each.name.c_str(), kOpenFolder));
    if (!abandoned.valid() || ::flock(abandoned.get(), LOCK_EX | LOCK_NB) != 0) continue;
    (void)remove_tree(folder.get(), each.name);
  }
}

Status BlobCache::begin() {
  if (incoming_name_.empty()) {
    MONARCH_TRY(make_incoming());
  }
  hash_ = Sha256();
  file_ = UniqueFd(::openat(incoming_.get(), kPart, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_.valid()) return disk_error(text("making a file in ", printable(path_)), errno);
  return {};
}

Status BlobCache::add(std::string_view bytes) {
  hash_.add(bytes);
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return disk_error(text("writing to ", printable(path_)), errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status BlobCache::finish(const TreeBlob& blob) {
  const std::string came = hash_.finish();
  if (came != blob.sha256) {
    return Error{ErrorCode::kInvalid, text("what came as ", blob.sha256, " has the sha256 ", came)};
  }
  file_.reset();
  if (::renameat(incoming_.get(), kPart, incoming_.get(), blob.sha256.c_str()) != 0) {
    return disk_error(text("renaming a file in ", printable(path_)), errno);
  }
  finished_.push_back(blob.sha256);
  return {};
}

Status BlobCache::keep() {
  if (finished_.empty()) return {};
  // All at once, or a name could outlive a loss of power that its bytes did not.
  if (::syncfs(folder_.get()) != 0) return disk_error(text("writing ", printable(path_), " to its disk"), errno);
  for (const std::string& name : finished_) {
    if (::renameat(incoming_.get(), name.c_str(), folder_.get(), name.c_str()) != 0) {
      return disk_error(text("renaming a file into ", printable(path_)), errno);
    }
  }
  finished_.clear();
  return {};
}

std::size_t BlobCache::trim(std::uint64_t bytes, std::int64_t now) const {
  std::vector<Kept> kept = list(folder_.get());
  std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
  std::uint64_t total = 0;
  for (const Kept& each : kept) total += each.name.starts_with(kIncoming) ? 0 : each.size;
  std::size_t gone = 0;
  for (const Kept& each : kept) {
    const bool incoming = each.name.starts_with(kIncoming);
    if (incoming && each.used < now - kStaleSeconds) (void)remove_tree(folder_.get(), each.name);
    if (incoming || total <= bytes || each.used > now - kRecentSeconds) continue;
    if (::unlinkat(folder_.get(), each.name.c_str(), 0) != 0) continue;
    total -= each.size;
    ++gone;
  }
  return gone;
}

}  // namespace monarch
