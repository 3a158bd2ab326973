#include "transport/base/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "transport/base/unique_fd.h"

namespace monarch {

Status reach_loopback() {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return errno_error(ErrorCode::kUnsupported, "making a socket", errno);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(9);  // any: a datagram socket only looks for a way there
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return {};
  return errno_error(ErrorCode::kUnsupported,
                     "this machine does not reach itself (its loopback interface is down, as in a sandbox or a network "
                     "namespace of its own; `ip link set lo up` as its root): 127.0.0.1",
                     errno);
}

}  // namespace monarch
