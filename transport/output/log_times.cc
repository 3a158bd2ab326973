#include "transport/output/log_times.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <vector>

#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

constexpr int kFlags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;

// One write(2): a line is there whole or, after a full disk, torn, and a reader passes over it.
Status write_once(int fd, std::string_view words, const std::string& path) {
  const ssize_t n = ::write(fd, words.data(), words.size());
  if (n == static_cast<ssize_t>(words.size())) return {};
  return errno_error(text("write ", path), n < 0 ? errno : ENOSPC);
}

// As LogFile does: a link in the place of the mesh's folder is not followed.
Result<UniqueFd> folder_of(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/'));
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return errno_error(text("open ", folder), errno);
  return fd;
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Result<UniqueFd> open_in(const UniqueFd& folder, const std::string& path, int flags) {
  UniqueFd file(::openat(folder.get(), name_of(path).c_str(), flags, 0600));
  if (!file.valid()) return errno_error(text("open ", path), errno);
  return file;
}

Result<std::string> read_all(const UniqueFd& folder, const std::string& path) {
  MONARCH_ASSIGN(const UniqueFd file, open_in(folder, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  std::string content(2 * LogTimes::kMostBytes, '\0');
  std::size_t size = 0;
  for (;;) {
    const ssize_t n = ::read(file.get(), content.data() + size, content.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(text("read ", path), errno);
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
    if (size == content.size()) break;  // more than it ever has
  }
  content.resize(size);
  return content;
}

}  // namespace

void LogTimes::note(std::uint64_t offset, WallTime now) {
  const std::int64_t milliseconds = now.nanoseconds_since_epoch / 1'000'000;
  // A clock that was set back makes a line of its own.
  if (last_ != 0 && milliseconds >= last_ && milliseconds < last_ + kSpanMilliseconds) return;
  last_ = milliseconds;
  const Status status = append(offset, milliseconds);
  if (!status.ok() && !failed_) log_warn("no times of output: ", status.error().message);
  failed_ = !status.ok();
}

Status LogTimes::append(std::uint64_t offset, std::int64_t milliseconds) {
  struct stat what {};
  MONARCH_ASSIGN(const UniqueFd folder, folder_of(path_));
  MONARCH_ASSIGN(UniqueFd file, open_in(folder, path_, kFlags | O_APPEND));
  if (::fstat(file.get(), &what) != 0 || !S_ISREG(what.st_mode)) {
    return Error{ErrorCode::kInvalid, text(path_, " is not a regular file")};
  }
  if (static_cast<std::uint64_t>(what.st_size) >= kMostBytes) {
    MONARCH_TRY(thin(folder));
    MONARCH_ASSIGN(file, open_in(folder, path_, kFlags | O_APPEND));
  }
  return write_once(file.get(), text(offset, " ", milliseconds, " ", milliseconds + kSpanMilliseconds, "\n"), path_);
}

// Of two lines the offset and FIRST of the one, LAST of the other.
Status LogTimes::thin(const UniqueFd& folder) const {
  MONARCH_ASSIGN(const std::string content, read_all(folder, path_));
  std::string thinner;
  std::string_view rest = content;
  std::string_view kept;
  while (!rest.empty()) {
    const std::size_t newline = rest.find('\n');
    const std::string_view line = rest.substr(0, newline);
    rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline + 1);
    if (kept.empty()) {
      kept = line;
      continue;
    }
    thinner += text(kept.substr(0, kept.rfind(' ')), line.substr(std::min(line.rfind(' '), line.size())), "\n");
    kept = {};
  }
  if (!kept.empty()) thinner += text(kept, "\n");
  const std::string fresh = path_ + ".new";
  MONARCH_ASSIGN(const UniqueFd file, open_in(folder, fresh, kFlags | O_TRUNC));
  MONARCH_TRY(write_once(file.get(), thinner, fresh));
  if (::renameat(folder.get(), name_of(fresh).c_str(), folder.get(), name_of(path_).c_str()) != 0) {
    return errno_error(text("rename ", fresh), errno);
  }
  return {};
}

}  // namespace monarch
