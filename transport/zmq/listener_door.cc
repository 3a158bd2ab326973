#include "transport/zmq/listener_door.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <system_error>
#include <thread>

#include "transport/base/log.h"
#include "transport/base/system/thread_limits.h"

namespace monarch {

namespace {

constexpr std::size_t kMostAtOnce = 4'096;  // of those that wait: well above any backlog

// Of a kernel without close_range(2) (before 5.9), so many are enough.
constexpr int kClosedOneByOne = 64;

// In a thread that shares no descriptors: all but one of its copies are closed, which costs the others nothing. By
// number and not by libc's names: a sanitizer takes descriptors for the whole process's.
std::size_t turn_away_all(int listener) {
  if (::unshare(CLONE_FILES) != 0) return 0;
  const auto close_from_to = [](unsigned first, unsigned last) {
    return first > last || ::syscall(SYS_close_range, first, last, 0U) == 0;
  };
  const auto own = static_cast<unsigned>(listener);
  if (!close_from_to(0, own - 1) || !close_from_to(own + 1, UINT_MAX)) {
    for (int i = 0; i < kClosedOneByOne; ++i) {
      if (i != listener) (void)::syscall(SYS_close, i);
    }
  }
  std::size_t count = 0;
  while (count < kMostAtOnce) {
    const long guest = ::syscall(SYS_accept4, listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (guest < 0) break;  // EAGAIN: nobody waits
    (void)::syscall(SYS_close, guest);
    ++count;
  }
  return count;
}

}  // namespace

Result<ListenerDoor> ListenerDoor::of(int listener) {
  UniqueFd duplicate(::fcntl(listener, F_DUPFD_CLOEXEC, 0));
  if (!duplicate.valid()) return errno_error("duplicating a listening socket", errno);
  // libzmq 4.3.4 leaves it blocking: who is turned away here is not there any more when its own thread accepts, and it
  // knows EAGAIN.
  const int flags = ::fcntl(listener, F_GETFL);
  if (flags < 0 || ::fcntl(listener, F_SETFL, flags | O_NONBLOCK) != 0) {
    return errno_error("making a listening socket one that does not wait", errno);
  }
  return ListenerDoor(std::move(duplicate));
}

bool ListenerDoor::listens_at(int socket, std::uint16_t port) {
  int listens = 0;
  socklen_t size = sizeof listens;
  sockaddr_storage place{};
  socklen_t length = sizeof place;
  if (::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) return false;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&place), &length) != 0) return false;
  if (place.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(place).sin_port) == port;
  return place.ss_family == AF_INET6 && ntohs(reinterpret_cast<const sockaddr_in6&>(place).sin6_port) == port;
}

Result<UniqueFd> ListenerDoor::duplicate() const {
  UniqueFd duplicate(::fcntl(listener_.get(), F_DUPFD_CLOEXEC, 0));
  if (!duplicate.valid()) return errno_error("duplicating a listening socket", errno);
  return duplicate;
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
  try {
    std::thread([&count, this] { count = turn_away_all(listener_.get()); }).join();
  } catch (const std::system_error& error) {
    log_warn("who waits at a closed port is not turned away: ", thread_error(error.code().value()).message);
  }
  return count;
}

}  // namespace monarch
