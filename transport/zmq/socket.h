#pragma once

// ZmqSocket: one libzmq socket, never waiting. It turns libzmq's answers into ours; which options a socket gets and
// what its messages mean is for server_link, client_link, monitor and zap.
//
// Thread: one at a time; it may be handed to another thread before that thread starts. Lifetime: within its context's.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"
#include "transport/zmq/context.h"
#include "transport/zmq/frame.h"

namespace monarch {

// What a message was on its way.
struct ZmqArrival {
  int descriptor = -1;      // the connection's, libzmq's; -1: not known
  std::uint64_t bytes = 0;  // with all that CURVE and ZMTP put around its frames
};

class ZmqSocket {
 public:
  // `kind` and the option numbers are libzmq's; only transport/zmq names them.
  static Result<std::unique_ptr<ZmqSocket>> create(ZmqContext& context, int kind);
  ~ZmqSocket();
  ZmqSocket(const ZmqSocket&) = delete;
  ZmqSocket& operator=(const ZmqSocket&) = delete;

  Status set(int option, int value);
  Status set_wide(int option, std::int64_t value);
  Status set_bytes(int option, std::string_view value);

  Status bind(const std::string& endpoint);
  Status connect(const std::string& endpoint);

  // kBusy: the queue is full, or there is no peer yet. kGone: a ROUTER does not know the peer, or it left midway.
  // The frames are consumed if and only if the message was accepted, or was lost with a peer that left midway.
  Status send(std::span<ZmqFrame> frames);

  enum class Taken : std::uint8_t { kNothing, kMessage, kTooManyFrames };
  // Takes one whole message. One of more than `limit` frames is consumed and dropped. `names`: of how many frames in
  // front, which a ROUTER makes, nothing has travelled.
  Taken receive(std::vector<ZmqFrame>& frames, std::size_t limit, std::size_t names = 0, ZmqArrival* arrival = nullptr);

  void* native() const { return native_; }

 private:
  ZmqSocket(ZmqContext& context, void* native) : context_(context), native_(native) {}

  ZmqContext& context_;
  void* native_;
};

}  // namespace monarch
