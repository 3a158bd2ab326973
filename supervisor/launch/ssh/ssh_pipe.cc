#include "supervisor/launch/ssh/ssh_pipe.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace monarch {

namespace {
constexpr std::size_t kInward = 4096U << 10U;  // more than a window: what has come of the channel is taken at once
}  // namespace

Result<std::unique_ptr<SshPipe>> SshPipe::open(std::unique_ptr<SshChannel> channel, std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno_error("a socket", errno);
  const int on = 1;
  // Without it everything works, and waits a little more often.
  (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(port);
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0 && errno != EINPROGRESS) {
    return errno_error("connecting to a port of this machine", errno);
  }
  return std::unique_ptr<SshPipe>(new SshPipe(std::move(channel), std::move(socket)));
}

void SshPipe::watch(std::vector<pollfd>& watched, bool outward) const {
  const bool reads = outward && !socket_ended_ && outward_.empty();
  const bool writes = !connected_ || !inward_.empty();
  if (reads || writes) {
    watched.push_back({socket_.get(), static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)), 0});
  }
}

bool SshPipe::carry(bool outward) {
  if (ended()) return false;
  if (!connected_) {
    pollfd socket{socket_.get(), POLLOUT, 0};
    if (::poll(&socket, 1, 0) != 1) return false;
    int error = 0;
    socklen_t size = sizeof error;
    connected_ = ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
    broken_ = !connected_;
  }
  const bool in = !broken_ && carry_in();
  const bool out = !broken_ && outward && carry_out();
  return in || out;
}

bool SshPipe::carry_out() {
  if (outward_.empty() && !socket_ended_) {
    char piece[kSocketPiece];
    const ssize_t got = ::recv(socket_.get(), piece, sizeof piece, MSG_DONTWAIT);
    if (got < 0) {
      broken_ = !is_later(errno);
      return false;
    }
    socket_ended_ = got == 0;
    outward_.assign(piece, static_cast<std::size_t>(got));
  }
  if (outward_.empty()) {
    if (!socket_ended_ || told_channel_) return false;
    told_channel_ = true;
    broken_ = !channel_->send_eof().ok();
    return true;
  }
  const auto written = channel_->write_some(outward_);
  if (!written.ok()) {
    broken_ = true;
    return false;
  }
  outward_.erase(0, *written);
  return *written > 0;
}

bool SshPipe::read_channel() {
  bool any = false;
  while (!channel_ended_ && inward_.size() < kInward) {
    auto output = channel_->read_some();
    if (!output.ok()) {
      broken_ = true;
      return any;
    }
    channel_ended_ = output->ended;
    if (output->out.empty()) break;
    any = true;
    inward_ += output->out;
  }
  return any;
}

bool SshPipe::carry_in() {
  const bool came = inward_.empty() && read_channel();
  if (!inward_.empty()) {
    const ssize_t sent = ::send(socket_.get(), inward_.data(), inward_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      broken_ = broken_ || !is_later(errno);
      return came;
    }
    inward_.erase(0, static_cast<std::size_t>(sent));
    return true;
  }
  if (!channel_ended_ || told_socket_) return came;
  told_socket_ = true;
  (void)::shutdown(socket_.get(), SHUT_WR);  // of a connection that has ended meanwhile it fails, and means nothing
  return true;
}

}  // namespace monarch
