#pragma once

// SocketAddress: a numeric address and a port, as the kernel wants them; and what a socket says of its own.
//
// Thread: any.

#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace monarch {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

// Size 0: it is no numeric address.
SocketAddress socket_address(const std::string& address, std::uint16_t port);

// Of a bound socket.
std::uint16_t port_of(int fd);

// WARNING: a connection from a machine to a port of its own that nobody listens at may be given that port as its own
// too, and is then connected to itself (TCP's simultaneous open; RFC 9293, 3.5).
bool connected_to_itself(int fd);

}  // namespace monarch
