#pragma once

// ReconnectingClient: a ClientLink that comes back. When its connection ended, nobody listened, our key was refused (it
// was not in the server's table yet) or the handshake failed (the server has been replaced, or is stuck), it waits by
// Backoff and opens a new one. It delivers what came before a connection ended, nothing twice, and promises no
// delivery: a message on the way may be lost at each on_disconnected, and what to send again is the caller's to know.
//
// Thread: the loop's. Lifetime: within the loop's and the context's. A handler must not destroy it.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "transport/base/result.h"
#include "transport/zmq/backoff.h"
#include "transport/zmq/client_link.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch {

class ReconnectingClient {
 public:
  struct Handlers {
    std::function<void(std::vector<ZmqFrame>&&)> on_message;
    std::function<void()> on_connected;
    std::function<void()> on_disconnected;
    std::function<void(const Error&)>
        on_refused;  // each time. kGone: our key is not known; kTimeout: the handshake failed
  };
  // The keys outlive the client. `seed` decides the jitter.
  static Result<std::unique_ptr<ReconnectingClient>> start(ZmqContext& context, ZmqLoop& loop,
                                                           const ClientOptions& options, const CurveKeyPair& keys,
                                                           std::uint64_t seed, Handlers handlers);
  ~ReconnectingClient();
  ReconnectingClient(const ReconnectingClient&) = delete;
  ReconnectingClient& operator=(const ReconnectingClient&) = delete;

  bool connected() const { return link_ != nullptr && link_->connected(); }
  // As ClientLink::send.
  Status send(std::vector<ZmqFrame>& frames);
  // As ClientLink::linger, of the link that there is now.
  void linger(Duration patience) {
    if (link_) link_->linger(patience);
  }
  // Calls once when a send that was kBusy may succeed. Forgotten at a disconnection: on_connected follows.
  void when_writable(std::function<void()> handler);

 private:
  ReconnectingClient(ZmqContext& context, ZmqLoop& loop, const ClientOptions& options, const CurveKeyPair& keys,
                     std::uint64_t seed, Handlers handlers);
  Status open();
  void close();
  void retry();
  void refused(const Error& why);
  bool take_message();
  bool take_event();

  ZmqContext& context_;
  ZmqLoop& loop_;
  ClientOptions options_;
  const CurveKeyPair& keys_;
  Handlers handlers_;
  Backoff backoff_;
  std::unique_ptr<ClientLink> link_;  // none while backing off
  ZmqWatchId message_watch_ = 0;
  ZmqWatchId monitor_watch_ = 0;
  TimerId retry_timer_ = 0;
};

}  // namespace monarch
