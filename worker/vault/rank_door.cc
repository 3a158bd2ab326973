#include "worker/vault/rank_door.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "transport/base/log.h"
#include "worker/core/notify.h"

namespace monarch::vault {

namespace {

constexpr Duration kReadAgain = Duration::milliseconds(10);
constexpr std::size_t kDescriptors = 4;  // more than a question has; the kernel closes what does not fit (unix(7))

struct Received {
  std::size_t bytes = 0;
  UniqueFd descriptor;  // of one that came alone
};

// Nothing: no message waits. kGone: at the end. kBusy: what comes with it finds no room; it stays where it is.
Result<std::optional<Received>> receive(int socket, std::array<char, kNotifyBytes + 1>& bytes) {
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kDescriptors)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  // WARNING: descriptors for which a process has no room are cut off and lost (unix(7)). So a message is looked at
  // first.
  const ssize_t got = ::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<Received>();
  if (got <= 0) return Error{ErrorCode::kGone, "it has closed"};
  Received received{.bytes = static_cast<std::size_t>(got), .descriptor = {}};
  std::size_t count = 0;
  for (cmsghdr* part_of = CMSG_FIRSTHDR(&message); part_of != nullptr; part_of = CMSG_NXTHDR(&message, part_of)) {
    if (part_of->cmsg_level != SOL_SOCKET || part_of->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= part_of->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const char*>(part_of) + at, sizeof fd);
      received.descriptor = UniqueFd(fd);  // of several the last: it is refused anyway, by its seals or its digest
      ++count;
    }
  }
  if (count > 1) received.descriptor = UniqueFd();
  if ((message.msg_flags & MSG_CTRUNC) != 0 && count < kDescriptors) {
    return errno_error("the descriptor that comes with a question", EMFILE);
  }
  (void)::recv(socket, nullptr, 0, MSG_DONTWAIT);  // it is there, and leaves
  return std::optional<Received>(std::move(received));
}

bool send(int socket, const std::string& json, int descriptor) {
  iovec part{const_cast<char*>(json.data()), json.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(json.size());
}

}  // namespace

Result<std::unique_ptr<RankDoor>> RankDoor::open(EventLoop& loop, const std::string& path, Handlers handlers) {
  std::unique_ptr<RankDoor> door(new RankDoor(loop, std::move(handlers)));
  RankDoor* const self = door.get();
  MONARCH_ASSIGN(door->listener_,
                 SeqpacketListener::create(loop, path, [self](UniqueFd socket, const PeerCredentials& /*peer*/) {
                   self->accept(std::move(socket));
                 }));
  door->listener_->on_no_descriptor(door->handlers_.make_room);
  return door;
}

RankDoor::~RankDoor() {
  for (const auto& [client, connection] : connections_) {
    if (connection.watch != 0) loop_.forget(connection.watch);
    loop_.cancel(connection.read_timer);
  }
}

void RankDoor::accept(UniqueFd socket) {
  if (connections_.size() >= kConnections)
    return log_warn("more than ", kConnections, " connections of ranks: one is closed");
  const VaultClient client(next_client_++);
  const auto watch = loop_.watch(socket.get(), Interest::kRead, [this, client](Readiness) { on_readable(client); });
  if (!watch.ok()) return;  // the kernel has no memory for it: it sees a closed connection and comes again
  connections_[client] = {.socket = std::move(socket), .watch = watch.value(), .read_timer = 0};
}

void RankDoor::on_readable(VaultClient client) {
  const auto found = connections_.find(client);
  if (found == connections_.end()) return;
  std::array<char, kNotifyBytes + 1> bytes;  // not cleared: recvmsg says how much of it is written
  auto received = receive(found->second.socket.get(), bytes);
  if (!received.ok() && received.error().code == ErrorCode::kBusy) return read_later(client);
  if (!received.ok()) return drop(client);
  if (!*received) return;
  handlers_.on_question(client, {bytes.data(), (*received)->bytes}, std::move((*received)->descriptor));
}

// Not watched meanwhile: a loop tells of one that has closed again and again.
void RankDoor::read_later(VaultClient client) {
  Connection& connection = connections_.at(client);
  loop_.forget(std::exchange(connection.watch, 0));
  connection.read_timer = loop_.at(loop_.now() + kReadAgain, [this, client] {
    Connection& waiting = connections_.at(client);
    waiting.read_timer = 0;
    const auto watch =
        loop_.watch(waiting.socket.get(), Interest::kRead, [this, client](Readiness) { on_readable(client); });
    if (!watch.ok()) return drop(client);
    waiting.watch = *watch;
  });
}

void RankDoor::answer(VaultClient client, const std::string& json, UniqueFd descriptor) {
  const auto found = connections_.find(client);
  if (found == connections_.end()) return;
  // One that does not read its answers is not waited for.
  if (!send(found->second.socket.get(), json, descriptor.valid() ? descriptor.get() : -1)) drop(client);
}

void RankDoor::drop(VaultClient client) {
  const auto found = connections_.find(client);
  if (found == connections_.end()) return;
  if (found->second.watch != 0) loop_.forget(found->second.watch);
  loop_.cancel(found->second.read_timer);
  connections_.erase(found);
  handlers_.on_left(client);
}

}  // namespace monarch::vault
