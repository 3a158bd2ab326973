#include "transport/process/interface_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <memory>

namespace monarch {

std::vector<InterfaceAddress> interface_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  std::vector<InterfaceAddress> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_LOOPBACK) != 0) {
      continue;
    }
    const void* number = nullptr;
    bool link_local = false;
    const int family = entry->ifa_addr->sa_family;
    if (family == AF_INET) number = &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr;
    if (family == AF_INET6) {
      const in6_addr& six = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
      number = &six;
      link_local = IN6_IS_ADDR_LINKLOCAL(&six);
    }
    std::array<char, INET6_ADDRSTRLEN> words{};
    if (number == nullptr || ::inet_ntop(family, number, words.data(), words.size()) == nullptr) continue;
    found.push_back({.interface = entry->ifa_name, .address = words.data(), .link_local = link_local});
  }
  return found;
}

}  // namespace monarch
