#pragma once

// interface_addresses(): by which another machine may come: the addresses of interfaces that are up, without loopback.
//
// Thread: any.

#include <string>
#include <vector>

namespace monarch {

struct InterfaceAddress {
  std::string interface;
  std::string address;      // numeric
  bool link_local = false;  // IPv6's, which means nothing beyond its link
};
// As the system lists them; none where it does not say.
std::vector<InterfaceAddress> interface_addresses();

}  // namespace monarch
