#pragma once

// ZmqSocket: one libzmq socket, never waiting. It turns libzmq's answers into ours; which options a socket gets and
// what its messages mean is for server_link, client_link, monitor and zap.
//
// WARNING: the descriptor of a zmq socket (ZMQ_FD, zmq_getsockopt(3)) is edge-triggered, and each use of the socket, a
// send too, may take the edge with it. Who sleeps on it asks for events() before, after each use. So a socket says by
// itself that it was used.
//
// Thread: one at a time; it may be handed to another thread before that thread starts. Lifetime: within its context's.

#include <cstddef>
#include <cstdint>
#include <functional>
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
  Result<std::string> last_endpoint() const;

  // kBusy: the queue is full, or there is no peer yet. kGone: a ROUTER does not know the peer, or it left midway.
  // The frames are consumed if and only if the message was accepted, or was lost with a peer that left midway.
  Status send(std::span<ZmqFrame> frames);

  enum class Taken : std::uint8_t { kNothing, kMessage, kTooManyFrames };
  // Takes one whole message. One of more than `limit` frames is consumed and dropped. `names`: of how many frames in
  // front, which a ROUTER makes, nothing has travelled.
  Taken receive(std::vector<ZmqFrame>& frames, std::size_t limit, std::size_t names = 0, ZmqArrival* arrival = nullptr);

  // For who polls it with zmq_poll, which asks for the events each time.
  void* native() const { return native_; }

  // For a loop that sleeps on the descriptor. `hears` runs at each use, and does no more than take a note; empty:
  // nobody hears any more.
  Result<int> descriptor() const;
  void when_used(std::function<void()> hears) { hears_ = std::move(hears); }
  // Its descriptor got readable.
  void signalled() { (void)used(); }
  struct Events {
    bool readable = false;
    bool writable = false;
  };
  Events events();
  // False: it was found empty at its last use, and its descriptor tells when that changes.
  bool may_be_readable() const { return may_be_readable_; }

 private:
  ZmqSocket(ZmqContext& context, void* native) : context_(context), native_(native) {}
  void* used();

  ZmqContext& context_;
  void* native_;  // libzmq is called with used(), but where nothing is sent, taken or asked
  std::function<void()> hears_;
  bool may_be_readable_ = true;
};

}  // namespace monarch
