#include "transport/wire/seqpacket_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <utility>

#include "transport/base/text.h"
#include "transport/wire/unix_address.h"

namespace monarch {

Result<ChannelPair> make_channel_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    return errno_error("socketpair", errno);
  }
  return ChannelPair{.first = UniqueFd(ends[0]), .second = UniqueFd(ends[1])};
}

Result<UniqueFd> connect_seqpacket(const std::string& path) {
  MONARCH_ASSIGN(const sockaddr_un address, unix_address(path));
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno_error("socket", errno);
  const std::string what = text("connecting to ", printable(path));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return errno_error(what, errno);
  }
  MONARCH_ASSIGN(const PeerCredentials peer, peer_credentials(fd.get()));
  if (peer.uid != ::geteuid()) {
    return Error{ErrorCode::kInvalid, text(what, ": it belongs to uid ", peer.uid, ", this is uid ", ::geteuid())};
  }
  return fd;
}

Result<PeerCredentials> peer_credentials(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return errno_error("asking a socket for its peer's credentials", errno);
  }
  return PeerCredentials{.pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
}

}  // namespace monarch
