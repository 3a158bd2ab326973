#include "supervisor/launch/ssh/session/forward.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "supervisor/launch/ssh/session/raw_session.h"

namespace monarch {

Result<std::unique_ptr<Forward>> Forward::open(std::unique_ptr<VerifiedSession> jump, const std::string& address,
                                               std::uint16_t port, const Patience& patience) {
  MONARCH_ASSIGN(auto channel, SshChannel::connect(jump->raw(), address, port, patience));
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return errno_error("socketpair", errno);
  }
  return std::unique_ptr<Forward>(
      new Forward(std::move(jump), std::move(channel), UniqueFd(ends[0]), UniqueFd(ends[1])));
}

Forward::Forward(std::unique_ptr<VerifiedSession> jump, std::unique_ptr<SshChannel> channel, UniqueFd near,
                 UniqueFd far)
    : jump_(std::move(jump)), channel_(std::move(channel)), near_(std::move(near)), far_(std::move(far)) {}

Forward::~Forward() {
  carry();           // the last words of the session above
  channel_.reset();  // before the session that it is of
}

RawSession& Forward::raw() const { return jump_->raw(); }

void Forward::watch(std::vector<pollfd>& watched) const {
  if (near_.valid()) {
    const int events = (outward_.empty() ? POLLIN : 0) | (inward_.empty() ? 0 : POLLOUT);
    watched.push_back({near_.get(), static_cast<short>(events), 0});
  }
  // While the pair takes nothing the channel is not read either, and would be ready for ever.
  raw().watch(watched, inward_.empty());
}

void Forward::carry() {
  raw().carry();
  for (;;) {
    const std::uint64_t read = raw().bytes_read();
    const bool went_out = near_.valid() && carry_out();
    const bool came_in = near_.valid() && carry_in();
    // One of the two may have read what lets the other go on: a window that grew, bytes of the channel.
    if (!went_out && !came_in && raw().bytes_read() == read) return;
  }
}

// Whether anything moved.
bool Forward::carry_out() {
  if (outward_.empty()) {
    char piece[kSocketPiece];
    const ssize_t got = ::recv(near_.get(), piece, sizeof piece, MSG_DONTWAIT);
    if (got <= 0) return false;  // its end is the end of the session above, which ends this as well
    outward_.assign(piece, static_cast<std::size_t>(got));
  }
  const auto written = channel_->write_some(outward_);
  if (!written.ok()) {
    near_.reset();  // the session above reads the end
    return false;
  }
  outward_.erase(0, *written);
  return *written > 0;
}

bool Forward::carry_in() {
  if (inward_.empty() && !ended_) {
    auto output = channel_->read_some();
    if (!output.ok()) {
      near_.reset();
      return false;
    }
    inward_ = std::move(output->out);
    ended_ = output->ended;
  }
  if (inward_.empty()) {
    if (ended_) near_.reset();
    return false;
  }
  const ssize_t sent = ::send(near_.get(), inward_.data(), inward_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent <= 0) return false;
  inward_.erase(0, static_cast<std::size_t>(sent));
  return true;
}

}  // namespace monarch
