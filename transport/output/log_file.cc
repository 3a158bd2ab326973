#include "transport/output/log_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <utility>

#include "transport/base/files/directories.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

constexpr std::size_t kStartFileBytes = 64;
constexpr std::size_t kCopyBytes = 16U << 10U;  // where the file system cannot splice

// Most files find the folder that the first of them made.
Result<UniqueFd> open_directory(const std::string& path) {
  const auto open_it = [&path] {
    return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  };
  UniqueFd directory = open_it();
  if (!directory.valid() && errno == ENOENT) {
    MONARCH_TRY(make_directories(path));
    directory = open_it();
  }
  if (!directory.valid()) return errno_error(text("open ", path), errno);
  return directory;
}

// Writes all of it at `position`, or says by errno why not; `done` counts what the disk took either way.
int write_all(int fd, std::string_view bytes, std::uint64_t position, std::size_t& done) {
  done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(position + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    done += static_cast<std::size_t>(n);
  }
  return 0;
}

// The file is as good as before, and waits for room.
bool is_full(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

// What a pipe holds, where its bytes are to stay.
enum class Held : std::uint8_t { kNothing, kBytes, kEnd };
Held held_by(int pipe) {
  pollfd look{pipe, POLLIN, 0};
  if (::poll(&look, 1, 0) <= 0) return Held::kNothing;
  return (look.revents & POLLIN) != 0 ? Held::kBytes : Held::kEnd;
}

bool parse_number(std::string_view& rest, std::uint64_t& number) {
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc{}) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

}  // namespace

bool is_short_of_descriptors(const Status& status) {
  return !status.ok() && (status.error().errno_value == EMFILE || status.error().errno_value == ENFILE);
}

Status LogFile::open() {
  if (!directory_.valid()) {
    MONARCH_ASSIGN(directory_, open_directory(options_.directory));
  }
  MONARCH_TRY(find_start());
  UniqueFd file(::openat(directory_.get(), options_.name.c_str(),
                         O_RDWR | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!file.valid()) return errno_error(text("open ", options_.directory, "/", options_.name), errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return errno_error("fstat", errno);
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kInvalid, text(options_.directory, "/", options_.name, " is not a regular file")};
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
  file_ = std::move(file);
  if (!rotating_) return {};
  if (size_ > 0) return rotate();  // it had been announced, and not begun
  return continue_rotation();
}

Status LogFile::find_start() {
  start_ = 0;
  rotating_ = false;
  const std::string name = options_.name + ".start";
  const UniqueFd fd(::openat(directory_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT) return {};
    return errno_error(text("open ", options_.directory, "/", name), errno);
  }
  std::array<char, kStartFileBytes> buffer{};
  const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
  if (n < 0) return errno_error(text("read ", options_.directory, "/", name), errno);
  std::string_view rest(buffer.data(), static_cast<std::size_t>(n));
  if (!parse_number(rest, start_)) {
    return Error{ErrorCode::kInvalid, text(options_.directory, "/", name, " holds no offset")};
  }
  rotating_ = parse_number(rest, next_start_);
  return {};
}

Status LogFile::write_start(const std::string& content) {
  const std::string name = options_.name + ".start";
  const std::string fresh = name + ".new";
  const UniqueFd fd(
      ::openat(directory_.get(), fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return errno_error(text("open ", fresh), errno);
  std::size_t done = 0;
  if (const int error = write_all(fd.get(), content, 0, done); error != 0) {
    return errno_error(text("write ", fresh), error);
  }
  if (::renameat(directory_.get(), fresh.c_str(), directory_.get(), name.c_str()) != 0) {
    return errno_error(text("rename ", fresh), errno);
  }
  return {};
}

Status LogFile::rotate() {
  if (!rotating_) {
    next_start_ = end_offset();
    MONARCH_TRY(write_start(text(start_, ' ', next_start_, '\n')));
    rotating_ = true;
  }
  const std::string old = options_.name + ".1";
  if (::renameat(directory_.get(), options_.name.c_str(), directory_.get(), old.c_str()) != 0) {
    return errno_error(text("rename ", options_.name), errno);
  }
  file_.reset();
  return open();
}

// The file is the new one and empty. Not one byte goes into it before its start is settled.
Status LogFile::continue_rotation() {
  MONARCH_TRY(write_start(text(next_start_, '\n')));
  start_ = next_start_;
  rotating_ = false;
  return {};
}

Status LogFile::make_ready() {
  if (!file_.valid()) MONARCH_TRY(open());
  if (rotating_) MONARCH_TRY(size_ > 0 ? rotate() : continue_rotation());
  if (options_.max_bytes > 0 && size_ >= options_.max_bytes) MONARCH_TRY(rotate());
  return unnamed_loss_ > 0 ? name_loss() : Status{};
}

Status LogFile::name_loss() {
  const std::string line = text("\n[monarch: ", unnamed_loss_, " bytes of output were lost here: ", failure_, "]\n");
  std::size_t done = 0;
  const int error = write_all(file_.get(), line, size_, done);
  // Half a line would look like output: take it back. Where that fails too, it stays.
  if (error != 0 && ::ftruncate(file_.get(), static_cast<off_t>(size_)) == 0) done = 0;
  size_ += done;
  if (error != 0) return refused(error);
  unnamed_loss_ = 0;
  return {};
}

LogFile::Taken LogFile::take(int pipe, std::size_t limit) {
  if (const Status ready = make_ready(); !ready.ok()) return divert(pipe, limit, ready.error());
  // A loss that was just named may have filled the file: it may then pass its limit, by less than one piece.
  if (options_.max_bytes > size_) {
    limit = static_cast<std::size_t>(std::min<std::uint64_t>(limit, options_.max_bytes - size_));
  }
  return splices_ ? move(pipe, limit) : copy(pipe, limit);
}

LogFile::Taken LogFile::take_or_wait(int pipe, std::size_t limit) {
  if (!is_short_of_descriptors(make_ready())) return take(pipe, limit);
  if (!file_.valid()) close();  // who waits has none
  switch (held_by(pipe)) {
    case Held::kNothing: return {.outcome = Outcome::kEmpty};
    case Held::kBytes: return {.outcome = Outcome::kWaits};
    case Held::kEnd: break;
  }
  return {.outcome = Outcome::kEnded};
}

LogFile::Taken LogFile::move(int pipe, std::size_t limit) {
  for (;;) {
    auto position = static_cast<off64_t>(size_);
    const ssize_t n = ::splice(pipe, nullptr, file_.get(), &position, limit, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n > 0) return written(static_cast<std::size_t>(n));
    if (n == 0) return {.outcome = Outcome::kEnded};
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return {.outcome = Outcome::kEmpty};
    if (errno == EINVAL || errno == ENOSYS) {
      splices_ = false;
      return copy(pipe, limit);
    }
    return divert(pipe, limit, refused(errno));
  }
}

LogFile::Taken LogFile::copy(int pipe, std::size_t limit) {
  std::array<char, kCopyBytes> buffer;
  const ssize_t n = ::read(pipe, buffer.data(), std::min(limit, buffer.size()));
  if (n == 0) return {.outcome = Outcome::kEnded};
  if (n < 0) return {.outcome = errno == EAGAIN || errno == EINTR ? Outcome::kEmpty : Outcome::kEnded};
  std::size_t done = 0;
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
  const int error = write_all(file_.get(), bytes, size_, done);
  if (error == 0) return written(done);
  Taken taken{.outcome = Outcome::kLost, .offset = end_offset(), .bytes = bytes.size()};
  if (done > 0) taken = written(done);
  taken.lost = bytes.substr(done);
  lost_bytes_ += taken.lost.size();
  unnamed_loss_ += taken.lost.size();
  failed(refused(error));
  return taken;
}

// After anything but a lack of room it may be another file by now, as after ESTALE: it is opened again by its name.
Error LogFile::refused(int error) {
  if (!is_full(error)) close();
  return errno_error(text("write ", options_.directory, "/", options_.name), error);
}

void LogFile::failed(const Error& why) {
  failing_ = true;
  failure_ = why.message;
}

LogFile::Taken LogFile::divert(int pipe, std::size_t limit, const Error& why) {
  std::array<char, kCopyBytes> buffer;
  Taken taken{.outcome = Outcome::kEmpty, .offset = end_offset()};
  while (taken.lost.size() < limit) {
    const ssize_t n = ::read(pipe, buffer.data(), std::min(limit - taken.lost.size(), buffer.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || (n < 0 && errno != EAGAIN)) taken.outcome = Outcome::kEnded;
    if (n <= 0) break;
    taken.lost.append(buffer.data(), static_cast<std::size_t>(n));
  }
  failed(why);
  if (taken.lost.empty()) return taken;
  taken.outcome = Outcome::kLost;
  taken.bytes = taken.lost.size();
  lost_bytes_ += taken.bytes;
  unnamed_loss_ += taken.bytes;
  return taken;
}

LogFile::Taken LogFile::written(std::size_t bytes) {
  failing_ = false;
  Taken taken{.outcome = Outcome::kWritten, .offset = end_offset(), .bytes = bytes};
  size_ += bytes;
  return taken;
}

std::size_t LogFile::put(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size()) {
    Status status = make_ready();
    std::size_t done = 0;
    if (status.ok()) {
      const std::size_t room = options_.max_bytes > size_ ? static_cast<std::size_t>(options_.max_bytes - size_) : 0;
      const std::string_view next = bytes.substr(taken, options_.max_bytes > 0 ? room : bytes.size());
      if (const int error = write_all(file_.get(), next, size_, done); error != 0) status = refused(error);
    }
    taken += done;
    size_ += done;
    if (!status.ok()) {
      failed(status.error());
      break;
    }
    failing_ = false;
  }
  return taken;
}

void LogFile::lose(std::uint64_t bytes) {
  lost_bytes_ += bytes;
  unnamed_loss_ += bytes;
}

// NAME.1 goes first: between the two files a reader sees no gap. A crash on the way leaves a rotation that open()
// completes.
Status LogFile::begin_at(std::uint64_t offset) {
  if (!file_.valid()) MONARCH_TRY(open());
  const auto remove = [this](const std::string& name) -> Status {
    if (::unlinkat(directory_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
    return errno_error(text("remove ", options_.directory, "/", name), errno);
  };
  MONARCH_TRY(remove(options_.name + ".1"));
  next_start_ = offset;
  MONARCH_TRY(write_start(text(start_, ' ', next_start_, '\n')));
  MONARCH_TRY(remove(options_.name));
  file_.reset();
  return open();
}

void LogFile::close() {
  file_.reset();
  directory_.reset();
}

std::size_t LogFile::read_back(std::uint64_t offset, char* to, std::size_t bytes) const {
  if (offset < start_) return 0;
  UniqueFd again;
  if (!file_.valid()) {
    const std::string path = text(options_.directory, '/', options_.name);
    again = UniqueFd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  }
  const int file = file_.valid() ? file_.get() : again.get();
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::pread(file, to + done, bytes - done, static_cast<off_t>(offset - start_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

}  // namespace monarch
