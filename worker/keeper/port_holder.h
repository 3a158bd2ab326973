#pragma once

// Who has a TCP port on this machine, as far as /proc tells: sockets that are bound without listening or being
// connected are not listed there, and other users' descriptors only to root.
//
// Thread: the keeper's. Looks at every descriptor of every process that may be looked at: for an error message, not for
// a decision.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace monarch {

struct PortHolder {
  pid_t pid = 0;
  std::string program;  // as its process calls itself; raw bytes
};

// Nothing where nobody is found. `proc` is where the proc file system is.
std::optional<PortHolder> holder_of_port(std::uint16_t port, const std::string& proc = "/proc");

// The inode of the first socket of a table in the format of /proc/net/tcp whose local port this is; a listening one, if
// there is one. 0: none.
std::uint64_t socket_inode_of_port(std::string_view table, std::uint16_t port);

}  // namespace monarch
