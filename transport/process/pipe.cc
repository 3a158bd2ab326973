#include "transport/process/pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace monarch {

Result<Pipe> make_pipe(PipeReader reader) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("pipe2", errno);
  Pipe pipe{.reader = UniqueFd(ends[0]), .writer = UniqueFd(ends[1])};
  // Of this end alone: a child's end is another description.
  if (reader == PipeReader::kDoesNotWait && ::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
    return errno_error("fcntl F_SETFL", errno);
  }
  return pipe;
}

bool has_ended(int reader) {
  pollfd polled{reader, POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1 && (polled.revents & (POLLIN | POLLHUP)) == POLLHUP;
}

}  // namespace monarch
