#include "transport/wire/host_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/base/socket_address.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kHostBacklog = 1'024;
constexpr int kAliveSeconds = 3;
constexpr unsigned kUnansweredMilliseconds = 10'000;  // of what was sent; then the connection has ended

// What fails is as it was.
void set_stream_options(int fd) {
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnansweredMilliseconds, sizeof kUnansweredMilliseconds);
  // Who only waits hears of a lost host by these: they are answered by the kernel of a process that stands still, too.
  (void)::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kAliveSeconds, sizeof kAliveSeconds);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kAliveSeconds, sizeof kAliveSeconds);
}

Error connect_error(const std::string& where, int error) {
  const bool nobody = error == ECONNREFUSED || error == ENOENT;
  const bool let_go = error == ECONNRESET || error == EPIPE;  // with us in his queue
  const ErrorCode code = nobody ? ErrorCode::kGone : let_go ? ErrorCode::kBusy : ErrorCode::kTimeout;
  return errno_error(code, text("connecting to ", where), error);
}

Result<HostListener> listen_at(const std::string& address, std::uint16_t port) {
  const SocketAddress at = socket_address(address, port);
  if (at.size == 0) return Error{ErrorCode::kInvalid, text("`", printable(address), "` is no numeric address")};
  HostListener listener;
  MONARCH_ASSIGN(listener.socket, make_stream_socket(at.family()));
  const int on = 1;
  (void)::setsockopt(listener.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // what was in use just now
  if (::bind(listener.socket.get(), at.get(), at.size) != 0 || ::listen(listener.socket.get(), kHostBacklog) != 0) {
    return errno_error("listen", errno);
  }
  listener.port = port_of(listener.socket.get());
  return listener;
}

Error of_ports(const std::string& address, std::uint16_t first, std::uint16_t last, const std::string& what,
               int error) {
  const std::string ports = first == 0 ? "" : text(" ports ", first, " to ", last);
  return errno_error(text("listening for ", what, " at ", address, ports), error);
}

}  // namespace

Result<UniqueFd> make_stream_socket(int family) {
  UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno_error("a stream socket", errno);
  return socket;
}

Result<UniqueFd> begin_connect(UniqueFd socket, const sockaddr* address, socklen_t size, const std::string& where) {
  if (::connect(socket.get(), address, size) == 0 || errno == EINPROGRESS) return socket;
  return connect_error(where, errno);
}

// WARNING: a port that a keeper reserves for a rank is bound and not listened at, and who sets SO_REUSEADDR would be
// given it as well (socket(7)). Without that option a bind fails there; also where connections of an earlier listener
// have just ended.
bool is_free(std::uint16_t port) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in everywhere{};
  everywhere.sin_family = AF_INET;
  everywhere.sin_port = htons(port);
  everywhere.sin_addr.s_addr = htonl(INADDR_ANY);
  return socket.valid() && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&everywhere), sizeof everywhere) == 0;
}

Result<HostListener> listen_for_hosts(const std::string& address, std::uint16_t first, std::uint16_t last,
                                      const std::string& what) {
  int error = EADDRINUSE;
  // What somebody has just left comes last.
  for (const bool untouched : {true, false}) {
    for (std::uint32_t port = std::max(first, last);; --port) {
      const auto number = static_cast<std::uint16_t>(port);
      if (!untouched || first == 0 || is_free(number)) {
        auto listener = listen_at(address, first == 0 ? std::uint16_t{0} : number);
        if (listener.ok()) return listener;
        error = listener.error().errno_value;
        if (error == 0) return std::move(listener).error();
        if (error != EADDRINUSE && error != EACCES) return of_ports(address, first, last, what, error);
      }
      if (port == first || first == 0) break;
    }
  }
  return of_ports(address, first, last, what, error);
}

Result<UniqueFd> accept_host(const UniqueFd& listener) {
  for (;;) {
    UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid() && errno == ECONNABORTED) continue;
    if (!socket.valid()) return errno_error("accepting a connection", errno);
    set_stream_options(socket.get());
    return socket;
  }
}

Result<UniqueFd> connect_to_host(const std::string& address, std::uint16_t port) {
  const SocketAddress to = socket_address(address, port);
  if (to.size == 0) return Error{ErrorCode::kInvalid, text("`", printable(address), "` is no numeric address")};
  MONARCH_ASSIGN(UniqueFd socket, make_stream_socket(to.family()));
  set_stream_options(socket.get());
  return begin_connect(std::move(socket), to.get(), to.size, text(address, " port ", port));
}

// WARNING: while a connection is on its way there is no error, and no peer either.
Result<bool> connected(const UniqueFd& socket) {
  pollfd waiting{socket.get(), POLLOUT, 0};
  if (::poll(&waiting, 1, 0) <= 0) return false;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return connect_error("its port", error);
  if (connected_to_itself(socket.get())) return connect_error("its port", ECONNREFUSED);
  return true;
}

}  // namespace monarch
