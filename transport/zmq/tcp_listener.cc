#include "transport/zmq/tcp_listener.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "transport/base/assert.h"
#include "transport/base/socket_address.h"
#include "transport/base/text.h"
#include "transport/zmq/context.h"
#include "transport/zmq/link_options.h"

namespace monarch {

namespace {

// All workers of a job may dial at once. With libzmq's own 100 the kernel drops the rest, which dial again a second
// later.
constexpr int kBacklog = 1'024;

// What an earlier process of ours has just left there is nobody's to wait for.
Result<UniqueFd> listen_there(const std::string& address, std::uint16_t port) {
  MONARCH_ASSIGN(const std::string endpoint, tcp_endpoint(address, port == 0 ? "*" : text(port)));
  const SocketAddress place = socket_address(address, port);
  const int family = place.family();
  const int on = 1;
  const int off = 0;
  UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  const bool listens =
      socket.valid() && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
      (family != AF_INET6 || ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0) &&
      ::bind(socket.get(), place.get(), place.size) == 0 && ::listen(socket.get(), kBacklog) == 0;
  if (!listens) return zmq_error(text("binding ", endpoint), errno);
  return socket;
}

}  // namespace

Result<UniqueFd> listen_at(const std::string& address, const PortRange& ports) {
  if (ports.first == 0) return listen_there(address, 0);
  MONARCH_ASSERT(ports.first <= ports.last);
  for (std::uint32_t port = ports.first; port <= ports.last; ++port) {
    auto listener = listen_there(address, static_cast<std::uint16_t>(port));
    if (listener.ok() || listener.error().code != ErrorCode::kBusy) return listener;
  }
  return Error{ErrorCode::kBusy, text("every port of ", address, ":", ports.first, "-", ports.last, " is taken")};
}

}  // namespace monarch
