#include "worker/daemon/own_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include "transport/base/text.h"
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

namespace {

constexpr int kNone = 3;  // worse than any

// The lower the better.
int preference(const sockaddr* address) {
  if (address == nullptr) return kNone;
  if (address->sa_family == AF_INET) return 0;
  if (address->sa_family != AF_INET6) return kNone;
  return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr) ? 2 : 1;
}

std::string numeric(const sockaddr* address, const std::string& interface) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* number = address->sa_family == AF_INET
                           ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
                           : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (::inet_ntop(address->sa_family, number, text.data(), text.size()) == nullptr) return {};
  return preference(address) == 2 ? text.data() + ("%" + interface) : text.data();
}

}  // namespace

Result<std::string> interface_address(const std::string& name) {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return errno_error("asking for the interfaces of this host", errno);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(found, ::freeifaddrs);
  std::string best;
  int best_preference = kNone;
  std::vector<std::string> others;
  for (const ifaddrs* each = found; each != nullptr; each = each->ifa_next) {
    const int preferred = preference(each->ifa_addr);
    if (preferred == kNone || (each->ifa_flags & IFF_UP) == 0) continue;
    const std::string address = numeric(each->ifa_addr, each->ifa_name);
    others.push_back(text(printable(each->ifa_name), " (", address, ")"));
    if (name != each->ifa_name || preferred >= best_preference) continue;
    best = address;
    best_preference = preferred;
  }
  if (!best.empty()) return best;
  return Error{
      ErrorCode::kNotFound,
      text("network.interface is ", printable(name), ", and no interface of that name here is up with an address; ",
           others.empty() ? "there is none at all" : text("there are ", join(others, ", ")))};
}

}  // namespace monarch::daemon
