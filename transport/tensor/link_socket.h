#pragma once

// Sockets of links: one of the machine, which nobody reaches from elsewhere, and one of TCP.
//
// Thread: any. All of them are non-blocking.

#include <cstdint>
#include <string>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/wire/host_socket.h"

namespace monarch::tensor {

struct LinkListener {
  UniqueFd socket;
  std::string path;        // of one of the machine
  std::uint16_t port = 0;  // of one of TCP
};

// In the abstract namespace: its name goes with its process, whatever ends that (unix(7)).
Result<LinkListener> listen_on_machine();
// Nothing: nobody waits any more. `on_machine`: it has to be a process of this user.
Result<UniqueFd> accept_link(const LinkListener& listener);

// The connection may still be on its way (wire/host_socket.h). kGone: nobody listens there.
Result<UniqueFd> connect_on_machine(const std::string& path);

}  // namespace monarch::tensor
