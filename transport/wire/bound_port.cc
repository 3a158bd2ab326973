#include "transport/wire/bound_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "transport/base/text.h"

namespace monarch {

namespace {

bool let_others_listen(int fd) {
  const int on = 1;
  return ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
}

// The port on all addresses of the family; 0 with errno set on failure.
std::uint16_t bind_any(int fd, int family, std::uint16_t number) {
  const int off = 0;
  sockaddr_storage address{};
  socklen_t size = 0;
  if (family == AF_INET6) {
    if (::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) return 0;
    auto* six = reinterpret_cast<sockaddr_in6*>(&address);
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(number);
    six->sin6_addr = in6addr_any;
    size = sizeof *six;
  } else {
    auto* four = reinterpret_cast<sockaddr_in*>(&address);
    four->sin_family = AF_INET;
    four->sin_port = htons(number);
    four->sin_addr.s_addr = htonl(INADDR_ANY);
    size = sizeof *four;
  }
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0) return 0;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                                  : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

// WARNING: two who set SO_REUSEADDR before they bind are both given a port at which nobody listens (socket(7)).
// `alone`: it is set behind the bind, which fails then where another holds the port, or has just left it.
Result<BoundPort> bind_one(std::uint16_t number, bool alone) {
  int error = 0;
  // Both families where there is IPv6, else the one there is.
  for (const int family : {AF_INET6, AF_INET}) {
    UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const bool made = socket.valid() && (alone || let_others_listen(socket.get()));
    const std::uint16_t bound = made ? bind_any(socket.get(), family, number) : std::uint16_t{0};
    if (bound != 0 && (!alone || let_others_listen(socket.get()))) return BoundPort{std::move(socket), bound};
    error = errno;
    if (error == EADDRINUSE || error == EACCES) break;  // of the one family alone it would be half a port
  }
  return errno_error(number == 0 ? "reserving a TCP port" : text("reserving TCP port ", number), error);
}

}  // namespace

Result<BoundPort> bind_port(std::uint16_t number) { return bind_one(number, false); }

Result<BoundPort> bind_free_port(std::uint16_t first, std::uint16_t last) {
  if (first == 0) return bind_one(0, true);
  for (std::uint32_t port = std::max(first, last); port >= first; --port) {
    auto bound = bind_one(static_cast<std::uint16_t>(port), true);
    const int error = bound.ok() ? 0 : bound.error().errno_value;
    if (error != EADDRINUSE && error != EACCES) return bound;
  }
  return Error{ErrorCode::kBusy, text("no free port of ", first, " to ", last, " (network.ports)")};
}

}  // namespace monarch
