#include "worker/daemon/own_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>

#include "transport/base/unique_fd.h"

namespace monarch::daemon {

namespace {

// The connection of a datagram socket is a choice of route and address, made at once.
template <class Address>
std::string towards(int family, Address there, const void* (*number_of)(const Address&)) {
  const UniqueFd socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0)
    return {};
  socklen_t size = sizeof there;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&there), &size) != 0) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(family, number_of(there), text.data(), text.size()) != nullptr ? text.data() : "";
}

}  // namespace

std::string own_address(const std::string& address, std::uint16_t port) {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  if (::inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1) {
    return towards<sockaddr_in>(AF_INET, four, [](const sockaddr_in& own) -> const void* { return &own.sin_addr; });
  }
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  if (::inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) == 1) {
    return towards<sockaddr_in6>(AF_INET6, six, [](const sockaddr_in6& own) -> const void* { return &own.sin6_addr; });
  }
  return {};
}

}  // namespace monarch::daemon
