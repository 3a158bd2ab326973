#pragma once

// What both ends of a link have in common: limits, and how soon a dead connection is found. The defaults are those of
// the control port.
//
// Thread: values.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "transport/base/limits.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/zmq/curve.h"
#include "transport/zmq/socket.h"

namespace monarch {

struct LinkOptions {
  int io_thread = 0;  // of the context; control and bulk have one each
  int high_water_mark = limits::kControlHighWaterMark;
  std::optional<int> receive_high_water_mark = {};  // nothing: the same
  // All frames of a message together. A larger one is dropped and counted; libzmq disconnects the sender of a single
  // frame that is larger still by kDisconnectSlack.
  std::size_t message_bytes = limits::kControlPayloadBytes;
  // What may have come of one connection and not be handed out yet, beside the largest message: more than a full queue
  // of a port in bulk and the kernel's buffers. Who has sent more is disconnected (unread_watch.h). 0: is believed.
  std::uint64_t unread_bytes = 96U << 20U;
  Duration handshake_interval = Duration::seconds(2);
  // ZMTP's own heartbeats, by which this end finds that nobody is there; zero: it has other means.
  Duration beat_interval = Duration::seconds(1);
  Duration beat_timeout = Duration::seconds(4);
  // The other end is told to end the connection, too, where none of ours has come for beat_timeout.
  // WARNING: libzmq 4.3.4 looks through all timers of an I/O thread to cancel one (poller_base.cpp), and does so with
  // each message of a peer that has one: a server of a thousand peers spends a fifth of its time there.
  bool others_wait_for_beats = true;
};

inline constexpr std::size_t kDisconnectSlack = 64U << 10U;
inline constexpr std::size_t kFramesPerMessage = 16;

// WARNING: ZMQ_ROUTING_ID is never set. A client that reconnects under an id that the ROUTER still holds is deaf for
// ever (4.3.4), so the ROUTER names its links.
Status apply_link_options(ZmqSocket& socket, const LinkOptions& options, const CurveKeyPair& keys);

// "tcp://127.0.0.1:7000", "tcp://[::1]:7000"; kInvalid unless the address is numeric: a name would be looked up on the
// calling thread. `port` is a number or "*".
Result<std::string> tcp_endpoint(const std::string& address, const std::string& port);
bool is_ipv6(const std::string& address);

}  // namespace monarch
