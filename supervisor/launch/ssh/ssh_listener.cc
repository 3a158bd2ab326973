#include "supervisor/launch/ssh/ssh_listener.h"

#include <libssh/libssh.h>
#include <libssh/server.h>

#include <algorithm>
#include <utility>

#include "supervisor/launch/ssh/session/raw_session.h"
#include "transport/base/loopback.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kRefuse = 1;  // libssh answers the message by itself, with a no
constexpr int kTaken = 0;
constexpr int kAttempts = 3;
constexpr int kHighestPort = 65'535;

}  // namespace

Result<std::unique_ptr<SshListener>> SshListener::open(RawSession& session, const std::vector<std::uint16_t>& wanted,
                                                       const Patience& patience) {
  std::unique_ptr<SshListener> listener(new SshListener(session));
  for (const std::uint16_t port : wanted) {
    MONARCH_ASSIGN(const std::uint16_t bound, listener->listen(port, patience));
    listener->ports_.push_back(bound);
  }
  return listener;
}

SshListener::SshListener(RawSession& session) : session_(session) {
  ssh_set_message_callback(session_.handle(), &SshListener::on_message, this);
}

// Without it libssh would keep what the host asks for, and there is no end to that.
SshListener::~SshListener() {
  ssh_set_message_callback(
      session_.handle(), [](ssh_session, ssh_message, void*) { return kRefuse; }, nullptr);
}

// WARNING: which port it became libssh reads from the last packet that came, and that need not be the answer (libssh
// 0.10.6, channels.c): another packet has most likely been read to its end, and then there is no number. Such a port is
// left alone, and what connects to it is refused.
Result<std::uint16_t> SshListener::listen(std::uint16_t wanted, const Patience& patience) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    int bound = wanted;
    const auto answer = session_.until_done(SSH_AGAIN, patience, [&] {
      return ssh_channel_listen_forward(session_.handle(), kLoopbackAddress, wanted, wanted == 0 ? &bound : nullptr);
    });
    if (const auto* end = std::get_if<WaitEnd>(&answer)) {
      return Error{*end == WaitEnd::kTimeout ? ErrorCode::kTimeout : ErrorCode::kBusy,
                   text("listening on the host: ", *end == WaitEnd::kTimeout ? "no answer in time" : "cancelled",
                        patience.late())};
    }
    if (std::get<int>(answer) != SSH_OK) {
      return session_.connected() ? Error{ErrorCode::kUnsupported,
                                          text("sshd does not listen on ", kLoopbackAddress, ":", wanted, " for us")}
                                  : Error{ErrorCode::kGone, text("listening on the host: ", session_.error())};
    }
    const bool taken = std::find(ports_.begin(), ports_.end(), bound) != ports_.end();
    if (bound > 0 && bound <= kHighestPort && !taken) return static_cast<std::uint16_t>(bound);
  }
  return Error{ErrorCode::kInternal, "sshd did not say on which port it listens for us"};
}

// Within whatever call of libssh's reads from the connection.
int SshListener::on_message(ssh_session_struct*, ssh_message_struct* message, void* self) {
  auto& listener = *static_cast<SshListener*>(self);
  const bool is_connection = ssh_message_type(message) == SSH_REQUEST_CHANNEL_OPEN &&
                             ssh_message_subtype(message) == SSH_CHANNEL_FORWARDED_TCPIP;
  if (!is_connection || listener.waiting_.size() >= kWaiting) return kRefuse;
  const auto port = std::find(listener.ports_.begin(), listener.ports_.end(),
                              ssh_message_channel_request_open_destination_port(message));
  if (port == listener.ports_.end()) return kRefuse;
  ssh_channel_struct* channel = ssh_message_channel_request_open_reply_accept(message);
  if (channel == nullptr) return kTaken;  // the connection is ending
  listener.waiting_.push_back(
      {static_cast<std::size_t>(port - listener.ports_.begin()), SshChannel::adopt(listener.session_, channel)});
  return kTaken;
}

std::deque<SshListener::Connection> SshListener::take() {
  // Reads from the connection, as all of these calls do, and finds nothing: messages go to on_message().
  if (ssh_message message = ssh_message_get(session_.handle()); message != nullptr) ssh_message_free(message);
  return std::exchange(waiting_, {});
}

}  // namespace monarch
