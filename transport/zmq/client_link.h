#pragma once

// ClientLink: one DEALER with CURVE, which makes one connection to one server. libzmq says only to its monitor what
// becomes of it, so this says when the connection came, went, or was refused. Then the link is finished: what came
// before can still be read, and its owner makes another one (ReconnectingClient does).
//
// Thread: the loop's. Lifetime: within the context's.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/zmq/link_options.h"
#include "transport/zmq/monitor.h"
#include "transport/zmq/unread_watch.h"

namespace monarch {

struct ClientOptions {
  std::string address = "127.0.0.1";  // numeric
  std::uint16_t port = 0;
  CurvePublicKey server_key = {};
  LinkOptions link = {};
};

enum class ClientEvent : std::uint8_t {
  kConnected,  // the handshake is done: the server knows us, and messages flow
  // The link is finished:
  kUnreachable,      // nobody listens or answers there, or no way leads there
  kRefused,          // the server does not know our key
  kHandshakeFailed,  // not the server whose key we have, or it did not answer in time
  kDisconnected,     // what was sent last may be lost; what came can be received
};

class ClientLink {
 public:
  static Result<std::unique_ptr<ClientLink>> connect(ZmqContext& context, const ClientOptions& options,
                                                     const CurveKeyPair& keys);
  ClientLink(const ClientLink&) = delete;
  ClientLink& operator=(const ClientLink&) = delete;

  // kGone: not connected, or the server left midway. kBusy: the queue is full; the frames are still the caller's.
  Status send(std::vector<ZmqFrame>& frames);
  // At its end, what was sent has this long to leave; nothing, unless this was called. It delays the context's end.
  void linger(Duration patience);
  // The next message; one above the limits is passed over and counted.
  std::optional<std::vector<ZmqFrame>> receive();
  // What the monitor said since; nothing behind the event that finishes the link.
  std::optional<ClientEvent> next_event();

  // Ends the connection where what has come of it and was not received yet is too much.
  void watch_unread(UnreadWatch& watch);

  bool connected() const { return connected_; }
  std::uint64_t refused_messages() const { return refused_messages_; }
  ZmqSocket& socket() { return *socket_; }
  ZmqSocket& monitor_socket() { return monitor_->socket(); }

 private:
  ClientLink(std::unique_ptr<ZmqSocket> socket, std::unique_ptr<ZmqMonitor> monitor, const LinkOptions& options);

  std::unique_ptr<ZmqSocket> socket_;
  std::unique_ptr<ZmqMonitor> monitor_;
  const std::size_t message_bytes_;
  const std::uint64_t unread_bytes_;
  std::unique_ptr<UnreadPort> unread_;
  bool connected_ = false;
  bool finished_ = false;
  std::uint64_t refused_messages_ = 0;
};

}  // namespace monarch
