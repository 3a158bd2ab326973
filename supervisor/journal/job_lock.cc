#include "supervisor/journal/job_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <utility>

#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr char kLockName[] = "lock";
constexpr char kGuardLockName[] = "guard.lock";
constexpr std::size_t kLockBytes = 4096;

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;  // l_len 0: to the end; l_pid 0, as F_OFD_* want it
}

// 0, or the errno.
int try_lock(int fd) {
  struct flock lock = whole_file();
  return ::fcntl(fd, F_OFD_SETLK, &lock) < 0 ? errno : 0;
}

std::string read_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Field 22 of /proc/self/stat; 0 if it cannot be read. The command's name may hold anything but ends at the last ')'.
std::uint64_t own_start_ticks() {
  const std::string line = read_line("/proc/self/stat");
  std::size_t at = line.rfind(')');
  for (int field = 2; at != std::string::npos && field < 22; ++field) at = line.find(' ', at + 1);
  std::uint64_t ticks = 0;
  if (at != std::string::npos) (void)std::from_chars(line.data() + at + 1, line.data() + line.size(), ticks);
  return ticks;
}

LockHolder parse_holder(const std::string& bytes) {
  LockHolder holder;
  const auto json = parse_json(bytes, {.bytes = kLockBytes});
  if (!json.ok()) return holder;
  holder.pid = json->get_int64("pid").value_or(0);
  holder.host = json->get_string("host").value_or("");
  holder.started = json->get_string("started").value_or("");
  holder.start_ticks = json->get_uint64("start_ticks").value_or(0);
  holder.boot_id = json->get_string("boot_id").value_or("");
  return holder;
}

LockHolder read_holder(const SecureDirectory& job, const char* name) {
  const auto bytes = job.read_file(name, kLockBytes);
  return bytes.ok() ? parse_holder(*bytes) : LockHolder{};
}

Error held_error(const SecureDirectory& job) {
  const LockHolder holder = read_holder(job, kLockName);
  if (holder.pid == 0) return Error{ErrorCode::kBusy, text("another supervisor holds ", job.path())};
  return Error{ErrorCode::kBusy, text("another supervisor holds ", job.path(), ": pid ", holder.pid, " on ",
                                      printable(holder.host), ", since ", printable(holder.started))};
}

Error guarded_error(const SecureDirectory& job) {
  const LockHolder guard = read_holder(job, kGuardLockName);
  const std::string_view starts = ": it starts the job's supervisor again by itself";
  if (guard.pid == 0) return Error{ErrorCode::kBusy, text("a guard holds ", job.path(), starts)};
  return Error{ErrorCode::kBusy,
               text("a guard holds ", job.path(), ", pid ", guard.pid, " on ", printable(guard.host), ", since ",
                    printable(guard.started), starts, " (if somebody has stopped it: kill -CONT ", guard.pid, ")")};
}

Error no_locks_error(const SecureDirectory& job, std::string_view why) {
  return Error{ErrorCode::kUnsupported, text("the file system of ", job.path(), " does not honour locks (", why,
                                             "): set MONARCH_STATE_DIR to a place on one that does")};
}

Status write_holder(int fd, const SecureDirectory& job, const char* name, const LockHolder& self) {
  const std::string line = to_json(Json::object({{"v", 1},
                                                 {"pid", self.pid},
                                                 {"host", self.host},
                                                 {"started", self.started},
                                                 {"start_ticks", self.start_ticks},
                                                 {"boot_id", self.boot_id}})) +
                           "\n";
  if (::ftruncate(fd, 0) < 0 || ::pwrite(fd, line.data(), line.size(), 0) != static_cast<ssize_t>(line.size())) {
    return errno_error(text("write ", job.path(), "/", name), errno);
  }
  return {};
}

// Nothing: somebody holds it.
Result<std::optional<UniqueFd>> lock_file(const SecureDirectory& job, const char* name) {
  MONARCH_ASSIGN(UniqueFd fd, job.open_file(name, O_RDWR | O_CREAT));
  int failure = try_lock(fd.get());
  if (failure == EAGAIN || failure == EACCES) return std::optional<UniqueFd>();
  if (failure != 0) return no_locks_error(job, errno_error("F_OFD_SETLK", failure).message);
  // S14: a second descriptor must be refused, or the lock proves nothing.
  MONARCH_ASSIGN(const UniqueFd second, job.open_file(name, O_RDWR));
  failure = try_lock(second.get());
  if (failure == 0) return no_locks_error(job, "a second lock on the same file was granted");
  if (failure != EAGAIN && failure != EACCES) {
    return no_locks_error(job, errno_error("F_OFD_SETLK", failure).message);
  }
  return std::optional<UniqueFd>(std::move(fd));
}

}  // namespace

LockHolder this_process_as_holder(WallTime now) {
  std::array<char, 256> host{};
  (void)::gethostname(host.data(), host.size() - 1);  // too long: cut, and it is for display
  return {::getpid(), host.data(), to_text(now), own_start_ticks(), read_line("/proc/sys/kernel/random/boot_id")};
}

Result<std::unique_ptr<JobLock>> JobLock::take(const SecureDirectory& job, const LockHolder& self) {
  MONARCH_ASSIGN(std::unique_ptr<JobLock> lock, take_silently(job));
  MONARCH_TRY(write_holder(lock->fd_.get(), job, kLockName, self));
  return lock;
}

Result<std::unique_ptr<JobLock>> JobLock::take_silently(const SecureDirectory& job) {
  MONARCH_ASSIGN(std::optional<UniqueFd> fd, lock_file(job, kLockName));
  if (!fd) return held_error(job);
  return std::unique_ptr<JobLock>(new JobLock(std::move(*fd)));
}

Result<UniqueFd> take_guard_lock(const SecureDirectory& job) {
  MONARCH_ASSIGN(std::optional<UniqueFd> fd, lock_file(job, kGuardLockName));
  if (fd) return std::move(*fd);
  MONARCH_ASSIGN(const bool supervised, is_locked(job));
  return supervised ? held_error(job) : guarded_error(job);
}

Status name_guard(const UniqueFd& lock, const SecureDirectory& job, const LockHolder& guard) {
  return write_holder(lock.get(), job, kGuardLockName, guard);
}

namespace {

Result<std::optional<LockHolder>> holder_of(const SecureDirectory& job, const char* name) {
  auto fd = job.open_file(name, O_RDONLY);
  if (!fd.ok() && fd.error().code == ErrorCode::kNotFound) return std::optional<LockHolder>();
  if (!fd.ok()) return fd.error();
  struct flock lock = whole_file();
  if (::fcntl(fd->get(), F_OFD_GETLK, &lock) < 0) return errno_error(text("F_OFD_GETLK of ", job.path()), errno);
  if (lock.l_type == F_UNLCK) return std::optional<LockHolder>();
  return std::optional(read_holder(job, name));
}

}  // namespace

Result<std::optional<LockHolder>> lock_holder(const SecureDirectory& job) { return holder_of(job, kLockName); }
Result<std::optional<LockHolder>> guard_holder(const SecureDirectory& job) { return holder_of(job, kGuardLockName); }

}  // namespace monarch
