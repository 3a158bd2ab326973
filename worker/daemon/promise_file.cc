#include "worker/daemon/promise_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "transport/base/files/directories.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch::daemon {
namespace {

constexpr std::size_t kPromiseBytes = 32;
constexpr const char* kName = "promise";
constexpr const char* kFreshName = "promise.new";

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
  const std::string_view content(buffer.data(), static_cast<std::size_t>(n));
  std::uint64_t term = 0;
  const auto [end, error] = std::from_chars(content.data(), content.data() + content.size(), term);
  if (error != std::errc{} || std::string_view(end, content.data() + content.size()) != "\n") {
    return Error{ErrorCode::kInvalid, text(path, " does not hold a term: '", printable(content), "'")};
  }
  return Term(term);
}

Status write_promise(const std::string& directory, Term term) {
  MONARCH_TRY(make_directories(directory));
  const UniqueFd folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid()) return errno_error(text("open ", directory), errno);
  const UniqueFd fd(::openat(folder.get(), kFreshName, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  const std::string path = text(directory, '/', kFreshName);
  if (!fd.valid()) return errno_error(text("open ", path), errno);
  const std::string content = text(term.value(), '\n');
  const ssize_t n = ::write(fd.get(), content.data(), content.size());
  if (n != static_cast<ssize_t>(content.size())) return errno_error(text("write ", path), n < 0 ? errno : ENOSPC);
  if (::fsync(fd.get()) != 0) return errno_error(text("fsync ", path), errno);
  if (::renameat(folder.get(), kFreshName, folder.get(), kName) != 0) {
    return errno_error(text("rename ", path), errno);
  }
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
