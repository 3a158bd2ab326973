#include "supervisor/launch/program_pipes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kMostReads = 64;  // in a call: who writes without end does not keep the loop for itself

}  // namespace

Result<ProgramPipe> make_program_pipe(PipeEnd ours) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return errno_error("pipe2", errno);
  ProgramPipe pipe{.ours = UniqueFd(fds[0]), .theirs = UniqueFd(fds[1])};
  if (ours == PipeEnd::kWrite) std::swap(pipe.ours, pipe.theirs);
  if (::fcntl(pipe.ours.get(), F_SETFL, O_NONBLOCK) != 0) return errno_error("fcntl", errno);
  return pipe;
}

bool read_available(int fd, std::string& into, std::size_t limit) {
  char buffer[16U << 10U];
  for (int turn = 0; turn < kMostReads; ++turn) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n > 0) {
      into.append(buffer, std::min(static_cast<std::size_t>(n), limit - std::min(into.size(), limit)));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    return n == 0 || errno != EAGAIN;
  }
  return false;
}

Result<UniqueFd> open_program_log(const std::string& path) {
  UniqueFd log(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!log.valid()) return errno_error(text("opening ", path), errno);
  struct stat status {};
  if (::fstat(log.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kInvalid, text(path, " is not a regular file")};
  }
  return log;
}

std::string_view last_line(std::string_view words) {
  while (words.ends_with('\n') || words.ends_with('\r')) words.remove_suffix(1);  // ssh's lines end like a terminal's
  words.remove_prefix(words.rfind('\n') + 1);                                     // npos + 1 is 0
  return words;
}

}  // namespace monarch
