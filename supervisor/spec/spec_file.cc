// Reading a spec's file, with every refusal that a path can earn.

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "supervisor/spec/slurm_allocation.h"
#include "supervisor/spec/spec.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/process/nvidia_gpus.h"

namespace monarch {

namespace {

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

// The bytes of a regular file; `what` is what an error says first.
Result<std::string> read_regular(const std::string& path, const std::string& what) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait; it is refused below.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return errno_error(what, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(what, errno);
  if (!S_ISREG(status.st_mode)) {
    const bool folder = S_ISDIR(status.st_mode);
    return Error{folder ? ErrorCode::kInvalid : ErrorCode::kUnsupported,
                 text(what, ": ", folder ? "it is a folder" : "it is not a regular file")};
  }
  return read_all(fd.get(), what);  // the size of fstat may be out of date: what is read counts
}

std::string home_of_user() {
  if (const char* home = ::getenv("HOME"); home != nullptr && *home == '/') return home;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16'384);
  const bool known = ::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
  return known && *entry.pw_dir == '/' ? std::string(entry.pw_dir) : std::string();
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
  MONARCH_ASSIGN(std::string bytes, read_regular(path, what));
  if (bytes.size() <= limits::kSpecBytes) return bytes;
  return Error{ErrorCode::kInvalid, text(what, ": it has more than ", limits::kSpecBytes, " bytes")};
}

SpecSurroundings users_surroundings() {
  return {.home = home_of_user(),
          .read_hosts = read_hosts_text,
          .find_allocation = [] { return allocation_from([](const char* name) { return std::getenv(name); }); },
          .says_no_kill = std::getenv("SLURM_NO_KILL") != nullptr,
          .count_gpus = count_gpus};
}

Result<SpecSource> read_spec_file(const std::string& path) {
  const std::string what = text("cannot read the spec ", printable(path));
  MONARCH_ASSIGN(std::string bytes, read_regular(path, what));
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  if (error) return errno_error(text(what, ": the working directory"), error.value());
  const std::string directory = whole.lexically_normal().parent_path().string();
  return SpecSource{.name = path, .text = std::move(bytes), .directory = directory};
}

Result<SpecSource> read_spec_stdin(int fd) {
  const std::string what = text("cannot read the spec ", kStdinName);
  if (::isatty(fd) == 1) return Error{ErrorCode::kInvalid, text(what, ": standard input is a terminal")};
  MONARCH_ASSIGN(std::string bytes, read_all(fd, what));
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error) return errno_error(text(what, ": the working directory"), error.value());
  return SpecSource{.name = std::string(kStdinName), .text = std::move(bytes), .directory = here.string()};
}

}  // namespace monarch
