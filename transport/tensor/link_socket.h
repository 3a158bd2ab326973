#pragma once

// Sockets of links: one of the machine, which nobody reaches from elsewhere, and one of TCP.
//
// Thread: any. All of them are non-blocking.

#include <cstdint>
#include <memory>
#include <string>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/wire/host_socket.h"
#include "transport/wire/socket_file.h"

namespace monarch::tensor {

struct LinkListener {
  UniqueFd socket;
  std::string path;                  // of one of the machine
  std::unique_ptr<SocketFile> file;  // there; nullptr: its name is abstract
  std::uint16_t port = 0;            // of one of TCP
};

// `stem`: how its path begins, in a folder that is the user's alone: a file there is nobody's else to connect to. Who
// has its folder removes what a killed process leaves. Where it cannot be had, and where `stem` is empty, its name is
// abstract (unix(7)): it goes with its process, and anybody on the machine may fill its queue.
Result<LinkListener> listen_on_machine(const std::string& stem);
// Its file was removed by somebody else: it has it anew, at the same path, with another socket. Who waited at the one
// before is let go.
Status listen_again(LinkListener& listener);
// EAGAIN: nobody waits any more. Of one of the machine: it has to be a process of this user.
Result<UniqueFd> accept_link(const LinkListener& listener);

// The connection may still be on its way (wire/host_socket.h). kGone: nobody listens there.
Result<UniqueFd> connect_on_machine(const std::string& path);

}  // namespace monarch::tensor
