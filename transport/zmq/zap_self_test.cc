#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/loopback.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/zmq/client_link.h"
#include "transport/zmq/server_link.h"
#include "transport/zmq/zap.h"

namespace monarch {

namespace {

constexpr Duration kDeadline = Duration::seconds(5);  // of the whole test; it takes some milliseconds

// What became of a client, or nothing by the deadline.
Result<std::optional<ClientEvent>> outcome(ClientLink& client, Instant deadline) {
  for (;;) {
    if (const auto event = client.next_event()) return event;
    const Instant now = boot_now();
    if (now >= deadline) return std::optional<ClientEvent>{};
    zmq_pollitem_t item{client.monitor_socket().native(), 0, ZMQ_POLLIN, 0};
    if (zmq_poll(&item, 1, EventLoop::wait_milliseconds(now, deadline)) < 0 && errno != EINTR) {
      return zmq_error("waiting for a handshake", errno);
    }
  }
}

Error failed(std::string_view what) {
  return Error{ErrorCode::kInternal, text("the self-test of the key check failed: ", what)};
}

}  // namespace

Status zap_self_test(ZmqContext& context, const std::function<Status(AllowTable)>& publish) {
  MONARCH_TRY(reach_loopback());
  MONARCH_ASSIGN(const CurveKeyPair server_keys, make_curve_key_pair());
  MONARCH_ASSIGN(const CurveKeyPair known, make_curve_key_pair());
  MONARCH_ASSIGN(const CurveKeyPair stranger, make_curve_key_pair());
  MONARCH_TRY(publish(AllowTable{.users = {{known.public_key, "self-test"}}, .denied = {stranger.public_key}}));

  MONARCH_ASSIGN(auto server, ServerLink::bind(context, ServerOptions{}, server_keys));
  ClientOptions options;
  options.port = server->port();
  options.server_key = server_keys.public_key;
  MONARCH_ASSIGN(auto known_link, ClientLink::connect(context, options, known));
  MONARCH_ASSIGN(auto stranger_link, ClientLink::connect(context, options, stranger));

  const Instant deadline = boot_now() + kDeadline;
  MONARCH_ASSIGN(const auto of_stranger, outcome(*stranger_link, deadline));
  if (of_stranger == ClientEvent::kConnected) return failed("a random key was let in");
  if (of_stranger != ClientEvent::kRefused) return failed("a random key was not refused by the handler");
  MONARCH_ASSIGN(const auto of_known, outcome(*known_link, deadline));
  if (of_known != ClientEvent::kConnected) return failed("a key of the table was not let in");
  return {};
}

}  // namespace monarch
