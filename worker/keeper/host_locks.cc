#include "worker/keeper/host_locks.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kSuffix = ".lock";

// "<thing>.<job>.<pid>.lock"; neither a thing nor a job has a dot.
std::optional<LockHolder> holder_named(std::string_view name, std::string_view thing) {
  if (!name.starts_with(thing) || !name.substr(thing.size()).starts_with('.') || !name.ends_with(kSuffix)) {
    return std::nullopt;
  }
  name.remove_prefix(thing.size() + 1);
  name.remove_suffix(kSuffix.size());
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  LockHolder holder{.job = std::string(name.substr(0, dot)), .pid = 0};
  const std::string_view digits = name.substr(dot + 1);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), holder.pid);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  return holder;
}

// Whether its holder lives. A leftover is removed.
bool is_live(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  // What another user could put here would be a lie, but none can: the directory is ours.
  if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  // It got its name when it was locked already, and no file is locked twice: nobody will ever hold this one again.
  (void)::unlink(path.c_str());  // another one may have removed it
  return false;
}

}  // namespace

HostLocks::~HostLocks() {
  for (const auto& [thing, held] : held_) (void)::unlink(held.path.c_str());  // nobody locks it: harmless if it stays
}

Status HostLocks::ensure_directory() const {
  if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) return errno_error(text("mkdir ", directory_), errno);
  struct stat status {};
  if (::lstat(directory_.c_str(), &status) != 0) return errno_error(text("lstat ", directory_), errno);
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 022) != 0) {
    return Error{ErrorCode::kInvalid, text(directory_, " is not a directory that only this user may write to")};
  }
  return {};
}

Result<HostLocks::Held> HostLocks::make_file(const std::string& thing) const {
  const std::string name = text(thing, '.', job_, '.', ::getpid(), kSuffix);
  const std::string fresh = text(directory_, "/.", name);
  Held held{.file = {}, .path = text(directory_, '/', name), .times = 1};
  (void)::unlink(fresh.c_str());  // of an earlier process with this pid
  held.file = UniqueFd(::open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!held.file.valid()) return errno_error(text("creating ", fresh), errno);
  const std::string words = text("job ", job_, "\npid ", ::getpid(), '\n');  // for people
  // Locked before it gets its name: nobody takes it for a leftover.
  if (::flock(held.file.get(), LOCK_EX | LOCK_NB) != 0 || ::write(held.file.get(), words.data(), words.size()) < 0 ||
      ::rename(fresh.c_str(), held.path.c_str()) != 0) {
    const int error = errno;
    (void)::unlink(fresh.c_str());
    return errno_error(text("locking ", held.path), error);
  }
  return held;
}

Result<std::optional<LockHolder>> HostLocks::other_holder(const std::string& thing, LockSharing sharing) const {
  for (const std::string& directory : looked_at_) {
    auto other = other_holder_in(directory, thing, sharing);
    if (!other || *other) return other;
  }
  return std::optional<LockHolder>();
}

Result<std::optional<LockHolder>> HostLocks::other_holder_in(const std::string& directory, const std::string& thing,
                                                             LockSharing sharing) const {
  // What another user put in the place of a folder of ours would name holders that are none.
  const UniqueFd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  const bool own = directory == directory_;
  if (!own && (!opened.valid() || ::fstat(opened.get(), &status) != 0 || status.st_uid != ::geteuid())) {
    return std::optional<LockHolder>();  // nobody of ours was ever there
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(directory.c_str()), ::closedir);
  if (!folder) return errno_error(text("opening ", directory), errno);
  while (const dirent* entry = ::readdir(folder.get())) {
    auto holder = holder_named(entry->d_name, thing);
    if (!holder) continue;
    const bool mine = holder->job == job_ && holder->pid == ::getpid();
    const bool shared = sharing == LockSharing::kJob && holder->job == job_;
    if (!mine && !shared && is_live(text(directory, '/', entry->d_name))) return holder;
  }
  return std::optional<LockHolder>();
}

Result<std::optional<LockHolder>> HostLocks::hold(const std::string& thing, LockSharing sharing) {
  if (const auto found = held_.find(thing); found != held_.end()) {
    ++found->second.times;
    return std::optional<LockHolder>();
  }
  // What comes over the wire must not lead out of the directory, nor look like another's file.
  for (const std::string& part : {thing, job_}) {
    if (part.empty() || part.find_first_of("./") != std::string::npos || part.find('\0') != std::string::npos) {
      return Error{ErrorCode::kInvalid, text('`', printable(part), "` names nothing that can be held")};
    }
  }
  MONARCH_TRY(ensure_directory());
  MONARCH_ASSIGN(Held held, make_file(thing));
  held_.emplace(thing, std::move(held));
  auto other = other_holder(thing, sharing);
  if (!other || *other) release(thing);
  return other;
}

void HostLocks::release(const std::string& thing) {
  const auto found = held_.find(thing);
  if (found == held_.end() || --found->second.times > 0) return;
  (void)::unlink(found->second.path.c_str());  // nobody locks it: harmless if it stays
  held_.erase(found);
}

}  // namespace monarch
