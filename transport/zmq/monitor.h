#pragma once

// ZmqMonitor: what libzmq says about the connections of one socket, as values. It names no peers: libzmq 4.3.4 does not
// say which connection a handshake belonged to. It tells TCP what kind of connections these are, for who watches learns
// of them.
//
// Thread: that of the watched socket. Lifetime: ends before the watched socket does.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "transport/base/result.h"
#include "transport/zmq/socket.h"

namespace monarch {

enum class MonitorEvent : std::uint8_t {
  kAccepted,
  kHandshaken,        // the peer proved its key, and the ZAP handler let it in
  kAuthRefused,       // the ZAP handler said no
  kProtocolError,     // another mechanism, a wrong server key, a malformed command
  kHandshakeDropped,  // silent until the interval ended, or gone before the handshake did
  kDisconnected,
  kNoConnection,  // a client's: nobody listens, or no way there
};

class ZmqMonitor {
 public:
  static Result<std::unique_ptr<ZmqMonitor>> attach(ZmqContext& context, ZmqSocket& watched);
  ~ZmqMonitor();
  ZmqMonitor(const ZmqMonitor&) = delete;
  ZmqMonitor& operator=(const ZmqMonitor&) = delete;

  // Nothing: there is no more for now.
  std::optional<MonitorEvent> next();
  // Hears of each connection from now on, by its descriptor, which is libzmq's and may be closed by then.
  void when_connected(std::function<void(int descriptor)> hears) { hears_ = std::move(hears); }
  // Once after a bind, before any next(): the listening socket, which is libzmq's.
  std::optional<int> listener();
  ZmqSocket& socket() { return *events_; }

 private:
  ZmqMonitor(ZmqSocket& watched, std::unique_ptr<ZmqSocket> events) : watched_(watched), events_(std::move(events)) {}

  ZmqSocket& watched_;
  std::unique_ptr<ZmqSocket> events_;
  std::function<void(int)> hears_;
};

}  // namespace monarch
