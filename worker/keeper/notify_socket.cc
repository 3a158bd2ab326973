#include "worker/keeper/notify_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/base/log.h"
#include "transport/base/text.h"
#include "worker/core/notify.h"

namespace monarch {

namespace {

constexpr int kDatagramsPerTurn = 64;
constexpr Duration kRest = Duration::milliseconds(1);
constexpr int kDrainedAtMost = 4'096;  // more than a queue of any usual net.unix.max_dgram_qlen
constexpr std::size_t kDescriptorsTaken = 8;

// What came along with a datagram. WARNING: descriptors beyond the buffer are closed by the kernel (unix(7)); those in
// it are ours to close.
struct Ancillary {
  std::optional<ucred> sender;

  explicit Ancillary(msghdr& message) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
      if (part->cmsg_level != SOL_SOCKET) continue;
      if (part->cmsg_type == SCM_CREDENTIALS) {
        std::memcpy(&sender.emplace(), CMSG_DATA(part), sizeof(ucred));
      } else if (part->cmsg_type == SCM_RIGHTS) {
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
          int fd = -1;
          std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
          (void)::close(fd);  // whatever it was, nobody here has a use for it
        }
      }
    }
  }
};

}  // namespace

Result<std::unique_ptr<NotifySocket>> NotifySocket::open(EventLoop& loop, std::string path, OnDatagram on_datagram,
                                                         OnDrop on_drop) {
  std::unique_ptr<NotifySocket> socket(
      new NotifySocket(loop, std::move(path), std::move(on_datagram), std::move(on_drop)));
  MONARCH_TRY(socket->bind());
  socket->look_later();
  return socket;
}

NotifySocket::NotifySocket(EventLoop& loop, std::string path, OnDatagram on_datagram, OnDrop on_drop)
    : loop_(loop), file_(std::move(path)), on_datagram_(std::move(on_datagram)), on_drop_(std::move(on_drop)) {}

NotifySocket::~NotifySocket() {
  if (watch_) loop_.forget(*watch_);
  if (rest_) loop_.cancel(*rest_);
  loop_.cancel(look_timer_);
}

void NotifySocket::look_later() {
  look_timer_ = loop_.at(SocketFile::next_look(loop_.now()), [this] { look(); });
}

// What waits in the one before is read first.
void NotifySocket::look() {
  look_later();
  if (!file_.is_missing()) return;
  drain();
  if (!bind().ok()) return;  // the next look tries again
  log_warn(printable(file_.path()), " was removed by somebody else, and is there again");
}

Status NotifySocket::bind() {
  struct stat status {};
  const std::string& path = file_.path();
  if (::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) (void)::unlink(path.c_str());
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno_error("socket", errno);
  const int on = 1;
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    return errno_error(text("making the socket ", printable(path)), errno);
  }
  MONARCH_TRY(file_.bind(socket.get()));
  if (watch_) loop_.forget(*watch_);
  MONARCH_ASSIGN(watch_, loop_.watch(socket.get(), Interest::kRead, [this](Readiness) { on_readable(); }));
  socket_ = std::move(socket);
  return {};
}

void NotifySocket::on_readable() {
  for (int i = 0; i < kDatagramsPerTurn; ++i) {
    if (!receive_one()) return;
  }
  loop_.change(*watch_, Interest::kNone);
  rest_ = loop_.at(loop_.now() + kRest, [this] {
    rest_.reset();
    loop_.change(*watch_, Interest::kRead);
  });
}

void NotifySocket::drain() {
  for (int i = 0; i < kDrainedAtMost; ++i) {
    if (!receive_one()) return;
  }
}

bool NotifySocket::receive_one() {
  std::array<char, kNotifyBytes> bytes;  // not cleared: recvmsg says how much of it is written
  iovec piece{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(kDescriptorsTaken * sizeof(int))> control;
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return errno == EINTR;  // EAGAIN: none waits; any other is as good as none
  const Ancillary ancillary(message);
  if (!ancillary.sender || ancillary.sender->uid != ::geteuid()) {
    ++drops_.foreign;
    on_drop_();
  } else if ((message.msg_flags & MSG_TRUNC) != 0) {
    ++drops_.too_long;
    on_drop_();
  } else {
    on_datagram_({bytes.data(), static_cast<std::size_t>(got)});
  }
  return true;
}

}  // namespace monarch
