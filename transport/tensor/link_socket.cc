#include "transport/tensor/link_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "transport/base/machine.h"
#include "transport/base/text.h"
#include "transport/wire/socket_directory.h"
#include "transport/wire/unix_address.h"

namespace monarch::tensor {

namespace {

constexpr int kBacklog = 1'024;
constexpr std::size_t kNameBytes = 16;
constexpr std::size_t kFileBytes = 4;  // of its name: several processes of a rank may have one each

// The name of a path that begins with "@", as the kernel has it; a file's else, of those that ranks make for this.
socklen_t machine_address(const std::string& path, sockaddr_un& address) {
  if (path.starts_with('/')) {
    const auto found = unix_address(path);
    if (!found.ok() || !path.ends_with(kTensorSocketEnd)) return 0;
    address = *found;
    return sizeof address;
  }
  if (path.size() < 2 || path.size() > sizeof address.sun_path || path[0] != '@') return 0;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, path.data() + 1, path.size() - 1);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
}

Status is_ours(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return errno_error("who is at a link", errno);
  if (peer.uid == ::geteuid()) return {};
  return Error{ErrorCode::kInvalid, text("a process of user ", peer.uid, " is at a link")};
}

Result<LinkListener> listen_at_file(std::string path) {
  LinkListener listener;
  listener.file = std::make_unique<SocketFile>(std::move(path), SocketFile::Folders::kOthers);
  listener.path = listener.file->path();
  MONARCH_TRY(listen_again(listener));
  return listener;
}

}  // namespace

Status listen_again(LinkListener& listener) {
  MONARCH_ASSIGN(UniqueFd socket, make_stream_socket(AF_UNIX));
  MONARCH_TRY(listener.file->bind(socket.get()));
  if (::listen(socket.get(), kBacklog) != 0) return errno_error("listening for readers of tensors", errno);
  listener.socket = std::move(socket);
  return {};
}

Result<LinkListener> listen_on_machine(const std::string& stem) {
  if (!stem.empty()) {
    auto at_file = listen_at_file(text(stem, to_hex(random_bytes(kFileBytes)), kTensorSocketEnd));
    if (at_file.ok()) return at_file;
  }
  LinkListener listener;
  listener.path = text("@monarch-tensors-", to_hex(random_bytes(kNameBytes)));
  MONARCH_ASSIGN(listener.socket, make_stream_socket(AF_UNIX));
  sockaddr_un address{};
  const socklen_t size = machine_address(listener.path, address);
  if (::bind(listener.socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener.socket.get(), kBacklog) != 0) {
    return errno_error("listening for readers of tensors", errno);
  }
  return listener;
}

Result<UniqueFd> accept_link(const LinkListener& listener) {
  for (;;) {
    MONARCH_ASSIGN(UniqueFd socket, accept_host(listener.socket));
    if (listener.path.empty() || is_ours(socket.get()).ok()) return socket;
  }
}

Result<UniqueFd> connect_on_machine(const std::string& path) {
  sockaddr_un address{};
  const socklen_t size = machine_address(path, address);
  if (size == 0) return Error{ErrorCode::kInvalid, text("`", printable(path), "` is no socket of this machine")};
  MONARCH_ASSIGN(UniqueFd socket, make_stream_socket(AF_UNIX));
  MONARCH_ASSIGN(socket, begin_connect(std::move(socket), reinterpret_cast<const sockaddr*>(&address), size, path));
  MONARCH_TRY(is_ours(socket.get()));
  return socket;
}

}  // namespace monarch::tensor
