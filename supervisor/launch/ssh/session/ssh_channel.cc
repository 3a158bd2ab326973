#include "supervisor/launch/ssh/session/ssh_channel.h"

#include <libssh/libssh.h>

#include <algorithm>

#include "supervisor/launch/ssh/session/raw_session.h"
#include "transport/base/loopback.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kChannelPiece = 32U << 10U;  // one read
constexpr std::size_t kMostAtOnce = 256U << 10U;   // one call's; a host that floods does not keep its caller
constexpr std::size_t kOneWrite = 256U << 10U;

Status waited(WaitEnd end, std::string_view doing, const Patience& patience) {
  switch (end) {
    case WaitEnd::kReady: return {};
    case WaitEnd::kTimeout: return Error{ErrorCode::kTimeout, text(doing, ": no answer in time", patience.late())};
    case WaitEnd::kCancelled: return Error{ErrorCode::kBusy, text(doing, ": cancelled")};
  }
  return {};
}

template <class Call>
Status settle(RawSession& session, const Patience& patience, std::string_view doing, Call call) {
  const auto answer = session.until_done(SSH_AGAIN, patience, std::move(call));
  if (const auto* end = std::get_if<WaitEnd>(&answer)) return waited(*end, doing, patience);
  if (std::get<int>(answer) == SSH_OK) return {};
  return Error{ErrorCode::kGone, text(doing, ": ", session.error())};
}

}  // namespace

Result<std::unique_ptr<SshChannel>> SshChannel::make(RawSession& session) {
  ssh_channel made = ssh_channel_new(session.handle());
  if (made == nullptr) return Error{ErrorCode::kInternal, text("a channel: ", session.error())};
  return std::unique_ptr<SshChannel>(new SshChannel(session, made));
}

Result<std::unique_ptr<SshChannel>> SshChannel::exec(RawSession& session, std::string_view command,
                                                     const Patience& patience) {
  MONARCH_ASSIGN(auto channel, make(session));
  ssh_channel raw = channel->channel_;
  MONARCH_TRY(settle(session, patience, "opening a channel", [&] { return ssh_channel_open_session(raw); }));
  const std::string line(command);
  MONARCH_TRY(
      settle(session, patience, "starting a command", [&] { return ssh_channel_request_exec(raw, line.c_str()); }));
  return channel;
}

Result<std::unique_ptr<SshChannel>> SshChannel::connect(RawSession& session, const std::string& address,
                                                        std::uint16_t port, const Patience& patience) {
  MONARCH_ASSIGN(auto channel, make(session));
  ssh_channel raw = channel->channel_;
  const Status opened = settle(session, patience, "connecting onward", [&] {
    return ssh_channel_open_forward(raw, address.c_str(), port, kLoopbackAddress, 0);
  });
  if (opened.ok()) return channel;
  // WARNING: libssh has the reason of RFC 4254, 5.1, in its text alone; 1 is "administratively prohibited".
  const bool forbidden = opened.error().message.find("error (1)") != std::string::npos;
  return Error{
      opened.error().code,
      text(opened.error().message,
           forbidden ? ": its sshd forbids that (AllowTcpForwarding, PermitOpen, or `restrict` of the key)" : "")};
}

std::unique_ptr<SshChannel> SshChannel::adopt(RawSession& session, ssh_channel_struct* opened) {
  return std::unique_ptr<SshChannel>(new SshChannel(session, opened));
}

SshChannel::~SshChannel() { ssh_channel_free(channel_); }

Error SshChannel::gone(std::string_view doing) const { return {ErrorCode::kGone, text(doing, ": ", session_.error())}; }

Result<std::size_t> SshChannel::write_some(std::string_view bytes) {
  if (bytes.empty()) return std::size_t{0};
  const int written =
      ssh_channel_write(channel_, bytes.data(), static_cast<std::uint32_t>(std::min(bytes.size(), kOneWrite)));
  if (written < 0) return gone("writing to a command");
  return static_cast<std::size_t>(written);
}

// Whether the stream has ended.
Result<bool> SshChannel::read_stream(std::string& into, int is_stderr) {
  while (into.size() < kMostAtOnce) {
    char piece[kChannelPiece];
    const int got = ssh_channel_read_nonblocking(channel_, piece, sizeof piece, is_stderr);
    if (got == SSH_EOF) return true;
    if (got < 0) return gone("reading from a command");
    if (got == 0) return ssh_channel_is_eof(channel_) != 0;
    into.append(piece, static_cast<std::size_t>(got));
  }
  return false;
}

Result<SshOutput> SshChannel::read_some() {
  SshOutput output;
  // Of the first stream, bytes may have come with the end while the second was asked: both are asked until nothing is
  // new.
  MONARCH_ASSIGN(bool out_ended, read_stream(output.out, 0));
  MONARCH_ASSIGN(const bool err_ended, read_stream(output.err, 1));
  if (!out_ended && err_ended) {
    MONARCH_ASSIGN(out_ended, read_stream(output.out, 0));
  }
  output.ended = out_ended && err_ended;
  return output;
}

// WARNING: each call of libssh's handles whatever packets have come: reading standard output may take in a window that
// grew, or bytes of standard error, and no further event on the socket tells of them.
Status SshChannel::wait(const Patience& patience) {
  const bool read_since = session_.bytes_read() != looked_at_;
  looked_at_ = session_.bytes_read();
  if (read_since) return {};
  const WaitEnd end = session_.wait(patience);
  return waited(end, "waiting for the host", patience);
}

Status SshChannel::send_eof() {
  // SSH_AGAIN: it is queued behind what the socket has not taken yet.
  if (ssh_channel_send_eof(channel_) == SSH_ERROR) return gone("ending a command's input");
  return {};
}

Result<std::optional<int>> SshChannel::exit_status(const Patience& patience) {
  for (;;) {
    const int status = ssh_channel_get_exit_status(channel_);  // -1 also before it has come
    if (status >= 0) return std::optional<int>(status);
    if (ssh_channel_is_closed(channel_) != 0 || !session_.connected()) return std::optional<int>();
    MONARCH_TRY(wait(patience));
  }
}

}  // namespace monarch
