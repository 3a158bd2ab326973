#include "transport/process/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <sstream>

#include "transport/base/sanitizers.h"
#include "transport/base/system/own_group.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::string read_descriptor(int fd) {
  std::string content;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
  }
}

std::string read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return fd.valid() ? read_descriptor(fd.get()) : std::string();
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> parts;
  for (std::string part; in >> part;) parts.push_back(part);
  return parts;
}

std::optional<long long> keyed_number(const std::string& content, std::string_view key) {
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    const auto parts = words(line);
    if (parts.size() != 2 || parts[0] != key) continue;
    long long value = 0;
    const auto parsed = std::from_chars(parts[1].data(), parts[1].data() + parts[1].size(), value);
    if (parsed.ec == std::errc()) return value;
  }
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<CgroupFolder>> CgroupFolder::own() {
  const auto path = own_group_folder("cgroup2", "");
  if (!path) return Error{ErrorCode::kUnsupported, "no cgroup v2 hierarchy is mounted here"};
  UniqueFd folder(::open(path->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!folder.valid()) return errno_error(text("opening ", *path), errno);
  return std::unique_ptr<CgroupFolder>(new CgroupFolder(std::move(folder), *path));
}

Result<std::unique_ptr<CgroupFolder>> CgroupFolder::top() {
  const auto mount = find_group_mount("cgroup2", "");
  if (!mount) return Error{ErrorCode::kUnsupported, "no cgroup v2 hierarchy is mounted here"};
  UniqueFd folder(::open(mount->point.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!folder.valid()) return errno_error(text("opening ", mount->point), errno);
  return std::unique_ptr<CgroupFolder>(new CgroupFolder(std::move(folder), mount->point));
}

Result<std::unique_ptr<CgroupFolder>> CgroupFolder::make(const std::string& name) const {
  if (::mkdirat(folder_.get(), name.c_str(), 0755) != 0 && errno != EEXIST) {
    return errno_error(text("making ", path_, '/', name), errno);
  }
  return open(name);
}

Result<std::unique_ptr<CgroupFolder>> CgroupFolder::open(const std::string& name) const {
  UniqueFd folder(::openat(folder_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!folder.valid()) return errno_error(text("opening ", path_, '/', name), errno);
  return std::unique_ptr<CgroupFolder>(new CgroupFolder(std::move(folder), text(path_, '/', name)));
}

void CgroupFolder::remove(const std::string& name) const {
  if (const auto below = open(name)) {
    for (const std::string& child : below.value()->names()) below.value()->remove(child);
  }
  // One that is in use or gone already stays as it is; `monarch rm` and `doctor` find what is left.
  (void)::unlinkat(folder_.get(), name.c_str(), AT_REMOVEDIR);
}

CgroupFolder::Forked CgroupFolder::fork() const {
  // That sanitizer has a thread of its own, and has to hear of each fork.
  if (!kThreadSanitizer) {
    clone_args arguments{};
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = SIGCHLD;
    arguments.cgroup = static_cast<decltype(arguments.cgroup)>(folder_.get());
    const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
    if (pid >= 0) return {.pid = static_cast<pid_t>(pid), .inside = true};
  }
  // Whatever it was: who joins is told what is wrong with the folder.
  return {.pid = ::fork()};
}

bool CgroupFolder::join() const {
  const int procs = ::openat(folder_.get(), "cgroup.procs", O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (procs < 0) return false;
  const bool joined = ::write(procs, "0", 1) == 1;
  const int error = errno;
  (void)::close(procs);
  errno = error;
  return joined;
}

bool CgroupFolder::can_be_joined() const {
  const Forked child = fork();
  if (child.pid == 0) ::_exit(child.inside || join() ? 0 : 1);
  if (child.pid < 0) return false;
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Status CgroupFolder::kill() const { return write("cgroup.kill", "1"); }

Status CgroupFolder::freeze(bool frozen) const { return write("cgroup.freeze", frozen ? "1" : "0"); }

bool CgroupFolder::populated() const {
  const std::optional<long long> told = keyed_number(read("cgroup.events"), "populated");
  return told ? *told != 0 : !removed();
}

// Somebody else may have done it while we have it open: then not even the files that each cgroup has are in it.
bool CgroupFolder::removed() const {
  return ::faccessat(folder_.get(), "cgroup.procs", F_OK, 0) != 0 && errno == ENOENT;
}

bool CgroupFolder::frozen() const { return keyed_number(read("cgroup.events"), "frozen").value_or(0) != 0; }

std::optional<long long> CgroupFolder::oom_kills() const { return keyed_number(read("memory.events"), "oom_kill"); }

std::vector<std::string> CgroupFolder::names() const {
  std::vector<std::string> found;
  UniqueFd again(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!again.valid()) return found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(again.get()), ::closedir);
  if (!folder) return found;
  (void)again.release();  // closedir() closes it
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string name(entry->d_name);
    if (entry->d_type == DT_DIR && name != "." && name != "..") found.push_back(name);
  }
  return found;
}

Status CgroupFolder::write(const char* file, std::string_view value) const {
  const UniqueFd fd(::openat(folder_.get(), file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return errno_error(text("opening ", path_, '/', file), errno);
  if (::write(fd.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size())) {
    return errno_error(text("writing ", path_, '/', file), errno);
  }
  return {};
}

std::string CgroupFolder::read(const char* file) const {
  const UniqueFd fd(::openat(folder_.get(), file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return fd.valid() ? read_descriptor(fd.get()) : std::string();
}

std::optional<long long> own_oom_kills() {
  if (const auto v2 = own_group_folder("cgroup2", "")) {
    if (const auto count = keyed_number(read_file(*v2 + "/memory.events"), "oom_kill")) return count;
  }
  if (const auto v1 = own_group_folder("cgroup", "memory")) {
    return keyed_number(read_file(*v1 + "/memory.oom_control"), "oom_kill");
  }
  return std::nullopt;
}

std::optional<std::string> no_group_because() {
  const auto own = CgroupFolder::own();
  if (!own.ok()) return own.error().message;
  const std::string name = text("monarch-try-", ::getpid());
  const auto made = (*own)->make(name);
  if (!made.ok()) return made.error().message;
  const bool joined = (*made)->can_be_joined();
  (*own)->remove(name);
  return joined ? std::nullopt : std::optional<std::string>("a child cannot be moved into a group of its own");
}

}  // namespace monarch
