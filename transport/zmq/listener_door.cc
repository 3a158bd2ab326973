#include "transport/zmq/listener_door.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include <cerrno>

namespace monarch {

namespace {

constexpr std::size_t kMostAtOnce = 4'096;  // of those that wait: well above any backlog

}  // namespace

Result<ListenerDoor> ListenerDoor::of(int listener) {
  UniqueFd duplicate(::fcntl(listener, F_DUPFD_CLOEXEC, 0));
  if (!duplicate.valid()) return errno_error("duplicating a listening socket", errno);
  // libzmq 4.3.4 leaves it blocking: who is turned away here is not there any more when its own thread accepts, and it knows EAGAIN.
  const int flags = ::fcntl(listener, F_GETFL);
  if (flags < 0 || ::fcntl(listener, F_SETFL, flags | O_NONBLOCK) != 0) {
    return errno_error("making a listening socket one that does not wait", errno);
  }
  return ListenerDoor(std::move(duplicate));
}

Status ListenerDoor::close() {
  // A filter of a listening socket sees what asks it for a connection (socket(7)); this one keeps no byte of anything.
  sock_filter drop{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};
  const sock_fprog program{.len = 1, .filter = &drop};
  if (::setsockopt(listener_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) {
    return errno_error("closing a port to new connections", errno);
  }
  return {};
}

Status ListenerDoor::open() {
  const int unused = 0;
  // ENOENT: it is open.
  if (::setsockopt(listener_.get(), SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused) != 0 && errno != ENOENT) {
    return errno_error("opening a port to new connections", errno);
  }
  return {};
}

std::size_t ListenerDoor::turn_away() const {
  std::size_t count = 0;
  while (count < kMostAtOnce) {
    const UniqueFd guest(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!guest.valid()) break;  // EAGAIN: nobody waits. EMFILE: the next look tries again
    ++count;
  }
  return count;
}

}  // namespace monarch
