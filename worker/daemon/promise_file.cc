#include "worker/daemon/promise_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>
#include <thread>

#include "transport/base/files/directories.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch::daemon {
namespace {

constexpr std::size_t kPromiseBytes = 32;
constexpr const char* kName = "promise";
constexpr const char* kFreshName = "promise.new";

Result<UniqueFd> open_folder(const std::string& directory) {
  UniqueFd folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid()) return errno_error(text("open ", directory), errno);
  return folder;
}

Result<UniqueFd> write_fresh(const UniqueFd& folder, const std::string& directory, Term term) {
  UniqueFd fd(::openat(folder.get(), kFreshName, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  const std::string path = text(directory, '/', kFreshName);
  if (!fd.valid()) return errno_error(text("open ", path), errno);
  const std::string content = text(term.value(), '\n');
  const ssize_t n = ::write(fd.get(), content.data(), content.size());
  if (n != static_cast<ssize_t>(content.size())) return errno_error(text("write ", path), n < 0 ? errno : ENOSPC);
  return fd;
}

// Side by side, where a thread can be had: a host's first hello waits for it.
Status sync_both(const UniqueFd& fd, const UniqueFd& folder, const std::string& directory) {
  int failure = 0;
  const auto sync = [&failure](int which) { failure = ::fsync(which) != 0 ? errno : 0; };
  int of_folder = 0;
  try {
    std::thread other(sync, fd.get());
    of_folder = ::fsync(folder.get()) != 0 ? errno : 0;
    other.join();
  } catch (const std::system_error&) {
    sync(fd.get());
    of_folder = ::fsync(folder.get()) != 0 ? errno : 0;
  }
  if (failure != 0) return errno_error(text("fsync ", directory, '/', kName), failure);
  if (of_folder != 0) return errno_error(text("fsync ", directory), of_folder);
  return {};
}

}  // namespace

Result<Term> read_promise(const std::string& directory) {
  const std::string path = text(directory, '/', kName);
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT) return Term{};
    return errno_error(text("open ", path), errno);
  }
  std::array<char, kPromiseBytes> buffer{};
  const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
  if (n < 0) return errno_error(text("read ", path), errno);
  if (n == 0) return Term{};
  const std::string_view content(buffer.data(), static_cast<std::size_t>(n));
  std::uint64_t term = 0;
  const auto [end, error] = std::from_chars(content.data(), content.data() + content.size(), term);
  if (error != std::errc{} || std::string_view(end, content.data() + content.size()) != "\n") {
    return Error{ErrorCode::kInvalid, text(path, " does not hold a term: '", printable(content), "'")};
  }
  return Term(term);
}

Status prepare_promise(const std::string& directory, Term term) {
  MONARCH_TRY(make_directories(directory));
  MONARCH_ASSIGN(const UniqueFd folder, open_folder(directory));
  MONARCH_ASSIGN(const UniqueFd fd, write_fresh(folder, directory, term));
  return {};
}

Status write_promise(const std::string& directory, Term term) {
  MONARCH_TRY(make_directories(directory));
  MONARCH_ASSIGN(const UniqueFd folder, open_folder(directory));
  MONARCH_ASSIGN(const UniqueFd fd, write_fresh(folder, directory, term));
  // A promise that is there keeps its name until the new one is on the disk. The first one takes nobody's.
  const bool first = ::faccessat(folder.get(), kName, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
  if (!first && ::fsync(fd.get()) != 0) return errno_error(text("fsync ", directory, '/', kFreshName), errno);
  if (::renameat(folder.get(), kFreshName, folder.get(), kName) != 0) {
    return errno_error(text("rename ", directory, '/', kFreshName), errno);
  }
  if (first) return sync_both(fd, folder, directory);
  if (::fsync(folder.get()) != 0) return errno_error(text("fsync ", directory), errno);
  return {};
}

void remove_promise(const std::string& directory) {
  // What cannot be removed at the end is told by whoever looks for leftovers; nobody is here to read it.
  (void)::unlink(text(directory, '/', kFreshName).c_str());
  (void)::unlink(text(directory, '/', kName).c_str());
  (void)::rmdir(directory.c_str());
  // hosts/<job>: the last worker of the job on this machine finds it empty.
  (void)::rmdir(directory.substr(0, directory.rfind('/')).c_str());
}

}  // namespace monarch::daemon
