// Reading a spec's file, with every refusal that a path can earn.

#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <poll.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "supervisor/spec/slurm_allocation.h"
#include "supervisor/spec/spec.h"
#include "transport/base/clock.h"
#include "transport/base/limits.h"
#include "transport/base/sha256.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/process/nvidia_gpus.h"

namespace monarch {

namespace {

constexpr std::uint64_t kPluginBytes = 1U << 30U;

// A little more than a spec may have, a byte order mark included: what load_spec then refuses was not cut.
constexpr std::size_t kMostRead = limits::kSpecBytes + 4;

Result<std::string> read_all(int fd, const std::string& what) {
  std::string bytes(kMostRead, '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::read(fd, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(what, errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

// The bytes of a pipe up to its end, which has to come by then.
Result<std::string> read_pipe(int fd, const std::string& what, Duration patience) {
  const Instant until = boot_now() + patience;
  std::string bytes;
  while (bytes.size() < kMostRead) {
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, EventLoop::wait_milliseconds(boot_now(), until));
    if (ready < 0 && errno != EINTR) return errno_error(what, errno);
    if (ready <= 0 && boot_now() >= until) {
      return Error{ErrorCode::kTimeout, text(what, ": it is a pipe that did not end within ", to_text(patience))};
    }
    if (ready <= 0) continue;
    std::array<char, 65'536> piece{};
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && !is_later(errno)) return errno_error(what, errno);
    if (got == 0) break;
    if (got > 0) bytes.append(piece.data(), static_cast<std::size_t>(got));
  }
  bytes.resize(std::min(bytes.size(), kMostRead));
  return bytes;
}

struct FileRead {
  std::string bytes;
  bool stream = false;
};

// The bytes of a regular file, or of a pipe; `what` is what an error says first.
Result<FileRead> read_file(const std::string& path, const std::string& what, Duration patience) {
  // O_NONBLOCK: opening a pipe that nobody writes to yet must not wait for ever.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return errno_error(what, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(what, errno);
  const bool pipe = S_ISFIFO(status.st_mode);
  if (!S_ISREG(status.st_mode) && !pipe) {
    const bool folder = S_ISDIR(status.st_mode);
    return Error{folder ? ErrorCode::kInvalid : ErrorCode::kUnsupported,
                 text(what, ": ", folder ? "it is a folder" : "it is neither a file nor a pipe")};
  }
  // The size of fstat may be out of date: what is read counts.
  MONARCH_ASSIGN(std::string bytes, pipe ? read_pipe(fd.get(), what, patience) : read_all(fd.get(), what));
  return FileRead{.bytes = std::move(bytes), .stream = pipe};
}

Result<std::string> working_directory(const std::string& what) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error) return errno_error(text(what, ": the working directory"), error.value());
  return here.string();
}

std::string home_of_user() {
  if (const char* home = ::getenv("HOME"); home != nullptr && *home == '/') return home;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16'384);
  const bool known = ::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
  return known && *entry.pw_dir == '/' ? std::string(entry.pw_dir) : std::string();
}

std::string real_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  return error ? path : real.string();
}

// A group of this user alone, as Debian and others give to each user with a umask of 002: it has his name and no other
// member. What cannot be looked up, or does not fit, is none.
bool is_private_group(gid_t group) {
  constexpr std::size_t kLookup = 16'384;
  passwd user{};
  passwd* found_user = nullptr;
  std::vector<char> user_words(kLookup);
  if (::getpwuid_r(::geteuid(), &user, user_words.data(), user_words.size(), &found_user) != 0) return false;
  if (found_user == nullptr || user.pw_gid != group) return false;
  struct group entry {};
  struct group* found = nullptr;
  std::vector<char> words(kLookup);
  if (::getgrgid_r(group, &entry, words.data(), words.size(), &found) != 0 || found == nullptr) return false;
  const std::string_view name = user.pw_name;
  if (entry.gr_name != name) return false;
  for (char** member = entry.gr_mem; *member != nullptr; ++member) {
    if (*member != name) return false;
  }
  return true;
}

// Who beside this user and root may change what a plugin is, and what to do about it; empty: nobody.
std::string other_writer(const struct stat& status) {
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return text("belongs to user ", status.st_uid, ", who may write to it: use a copy of yours");
  }
  if ((status.st_mode & S_IWOTH) != 0) return "may be written to by everybody: chmod o-w";
  if ((status.st_mode & S_IWGRP) == 0 || is_private_group(status.st_gid)) return "";
  return text("may be written to by the group ", status.st_gid, ": chmod g-w");
}

// What the kernel makes up has no end, or does something when it is read; what others may write to is theirs.
Status may_be_plugin(int fd, const std::string& path) {
  struct stat status {};
  struct statfs system {};
  if (::fstat(fd, &status) != 0 || ::fstatfs(fd, &system) != 0) return errno_error(printable(path), errno);
  const auto refused = [&path](std::string why) {
    return Error{ErrorCode::kInvalid, text(printable(path), ' ', std::move(why))};
  };
  if (!S_ISREG(status.st_mode)) return refused("is no file");
  if (system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC) return refused("is made up by the kernel");
  if (std::string writer = other_writer(status); !writer.empty()) return refused(std::move(writer));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size <= kPluginBytes) return {};
  return refused(text("has ", amount_text(size), ", and a plugin has ", amount_text(kPluginBytes), " at most"));
}

Result<std::string> hash_file(const std::string& path, Duration patience) {
  constexpr std::size_t kAtOnce = 1U << 16U;
  const Instant until = patience == Duration::forever() ? Instant::never() : boot_now() + patience;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe of that name is not waited for
  if (!fd.valid()) return errno_error(printable(path), errno);
  MONARCH_TRY(may_be_plugin(fd.get(), path));
  Sha256 hash;
  std::string bytes(kAtOnce, '\0');
  for (std::uint64_t hashed = 0; hashed <= kPluginBytes && boot_now() < until;) {
    const ssize_t count = ::read(fd.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(printable(path), errno);
    if (count == 0) return hash.finish();
    hash.add({bytes.data(), static_cast<std::size_t>(count)});
    hashed += static_cast<std::uint64_t>(count);
  }
  return Error{ErrorCode::kTimeout, text(printable(path), " was not read to its end within ", to_text(patience))};
}

std::uint32_t count_gpus() {
  const char* visible = ::getenv("CUDA_VISIBLE_DEVICES");
  wake_nvidia_gpus();
  const auto given = visible == nullptr ? std::nullopt : std::optional<std::string>(visible);
  return static_cast<std::uint32_t>(visible_gpus(read_nvidia_gpus(), given).size());
}

}  // namespace

Result<std::string> read_hosts_text(const std::string& path) {
  const std::string what = text("cannot read the file of hosts ", printable(path));
  MONARCH_ASSIGN(FileRead read, read_file(path, what, kPipePatience));
  if (read.bytes.size() <= limits::kSpecBytes) return std::move(read.bytes);
  return Error{ErrorCode::kInvalid, text(what, ": it has more than ", limits::kSpecBytes, " bytes")};
}

SpecSurroundings users_surroundings(Duration hashing) {
  return {.home = home_of_user(),
          .read_hosts = read_hosts_text,
          .real_path = real_path,
          .find_allocation = [] { return allocation_from([](const char* name) { return std::getenv(name); }); },
          .says_no_kill = std::getenv("SLURM_NO_KILL") != nullptr,
          .count_gpus = count_gpus,
          .hash_plugin = [hashing](const std::string& path) { return hash_file(path, hashing); }};
}

Result<SpecSource> read_spec_file(const std::string& path, Duration patience, std::string_view called) {
  const std::string what = text("cannot read the ", called, " ", printable(path));
  MONARCH_ASSIGN(FileRead read, read_file(path, what, patience));
  MONARCH_ASSIGN(std::string directory, working_directory(what));
  if (!read.stream) directory = (std::filesystem::path(directory) / path).lexically_normal().parent_path().string();
  return SpecSource{
      .name = path, .text = std::move(read.bytes), .directory = std::move(directory), .is_stream = read.stream};
}

Result<SpecSource> read_spec_stdin(int fd) {
  const std::string what = text("cannot read the spec ", kStdinName);
  if (::isatty(fd) == 1) return Error{ErrorCode::kInvalid, text(what, ": standard input is a terminal")};
  MONARCH_ASSIGN(std::string bytes, read_all(fd, what));
  MONARCH_ASSIGN(std::string directory, working_directory(what));
  return SpecSource{
      .name = std::string(kStdinName), .text = std::move(bytes), .directory = std::move(directory), .is_stream = true};
}

}  // namespace monarch
