#include "transport/wire/bound_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "transport/base/text.h"

namespace monarch {

namespace {

// The port on all addresses of the family; 0 with errno set on failure.
std::uint16_t bind_any(int fd, int family, std::uint16_t number) {
  const int on = 1;
  const int off = 0;
  if (::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return 0;
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

}  // namespace

Result<BoundPort> bind_port(std::uint16_t number) {
  int error = 0;
  // Both families where there is IPv6, else the one there is.
  for (const int family : {AF_INET6, AF_INET}) {
    UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const std::uint16_t bound = socket.valid() ? bind_any(socket.get(), family, number) : std::uint16_t{0};
    if (bound != 0) return BoundPort{std::move(socket), bound};
    error = errno;
    if (error == EADDRINUSE || error == EACCES) break;  // of the one family alone it would be half a port
  }
  return errno_error(number == 0 ? "reserving a TCP port" : text("reserving TCP port ", number), error);
}

}  // namespace monarch
