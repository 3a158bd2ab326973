#pragma once

// FrameStream: our frames over descriptors that carry bytes (pipes, a stream socket), each behind its length in four
// bytes, little-endian. Sending never blocks: what is not taken waits in a bounded queue. Bytes that are no frame end
// the stream with a reason; what the peer sent before it closed is still delivered. It checks no type, job or term: who
// gets the frame does.
//
// Thread: the loop's. Lifetime: shorter than the loop's; any handler may destroy it.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "transport/base/limits.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/wire/frame.h"

namespace monarch {

// All run from the loop, never from within send().
struct FrameStreamHandlers {
  std::function<void(Frame)> on_frame;
  // Once, and nothing after it: kGone at the end of what comes, kInvalid for what is no frame, else what the system
  // said.
  std::function<void(Error)> on_closed;
};

struct FrameStreamLimits {
  std::size_t queue_bytes = 16U << 20U;  // waiting; kBusy beyond, but an empty queue takes any frame
  std::size_t payload_bytes = limits::kSeqpacketPayloadBytes;
};

class FrameStream {
 public:
  // Both are made not to block. For a socket, `output` is a duplicate of `input`.
  static Result<std::unique_ptr<FrameStream>> create(EventLoop& loop, UniqueFd input, UniqueFd output,
                                                     FrameStreamHandlers handlers, FrameStreamLimits limits = {});
  FrameStream(const FrameStream&) = delete;
  FrameStream& operator=(const FrameStream&) = delete;
  ~FrameStream();

  // kBusy when the queue is full, kInvalid beyond the limit of a payload, kGone when nobody reads any more.
  Status send(const Frame& frame);
  std::size_t pending_bytes() const { return waiting_.size(); }

 private:
  FrameStream(EventLoop& loop, UniqueFd input, UniqueFd output, FrameStreamHandlers handlers, FrameStreamLimits limits);
  void receive();
  bool take_frames();
  void flush();
  void finish(Error why);

  EventLoop& loop_;
  UniqueFd input_;
  UniqueFd output_;
  // Owners: this, and each of its functions on the stack that calls one; gone from here: this is destroyed.
  std::shared_ptr<const FrameStreamHandlers> handlers_;
  FrameStreamLimits limits_;
  WatchId reads_ = 0;
  WatchId writes_ = 0;
  bool unread_ = false;  // the peer reads nothing any more
  std::string heard_;
  std::string waiting_;
};

// How one frame is written.
std::string stream_bytes(const Frame& frame);

}  // namespace monarch
