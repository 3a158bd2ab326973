#pragma once

// SeqpacketChannel: frames and descriptors, both ways, over one SEQPACKET socket on an EventLoop. Sending never blocks:
// what the socket does not take waits in a bounded queue. A malformed message ends the channel with a reason; what the
// peer sent before it closed is still delivered. It checks no type, term or generation: who gets the frame does.
//
// Thread: the loop's. Lifetime: shorter than the loop's; any handler may destroy it.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/limits.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/wire/frame.h"
#include "transport/wire/seqpacket_message.h"

namespace monarch {

// All run from the loop, never from within send() or close().
struct ChannelHandlers {
  std::function<void(Frame, std::vector<UniqueFd>)> on_frame;
  // Once, and nothing after it: kGone when either side closed, kInvalid for a malformed message, else what the system
  // said.
  std::function<void(Error)> on_closed;
  // Optional. Frames had to wait, and now none does.
  std::function<void()> on_drained = {};
};

struct ChannelLimits {
  std::size_t queue_frames = 1'024;     // waiting frames; one more is kBusy
  std::size_t queue_bytes = 4U << 20U;  // of waiting frames; kBusy, but an empty queue takes any frame
  std::size_t payload_bytes = limits::kSeqpacketPayloadBytes;  // received; a larger one ends the channel
};

class SeqpacketChannel {
 public:
  static Result<std::unique_ptr<SeqpacketChannel>> create(EventLoop& loop, UniqueFd socket, ChannelHandlers handlers,
                                                          ChannelLimits limits = {});
  SeqpacketChannel(const SeqpacketChannel&) = delete;
  SeqpacketChannel& operator=(const SeqpacketChannel&) = delete;
  ~SeqpacketChannel();

  // kBusy when the queue is full, kInvalid beyond the limits of a message, kGone after the peer closed or close(). The
  // descriptors are closed here in any case, when they have been sent or when they will not be. `late` is made when the
  // frame's turn has come; while descriptors are too short for it the frame waits, and all behind it.
  Status send(const Frame& frame, std::vector<UniqueFd> descriptors = {}, LateDescriptor late = {});

  // Sends what waits, then closes and says so through on_closed. Receives nothing any more. A peer that does not read
  // holds this up without end: the owner keeps a deadline and destroys the channel.
  void close();

  // Paused, nothing is read, so a peer that goes on has to wait; one that has closed is read to its end all the same.
  void pause();
  void resume();

  bool open() const { return state_ == State::kOpen; }
  std::size_t pending_bytes() const { return pending_bytes_; }
  std::size_t pending_frames() const { return queue_.size(); }
  int descriptor() const { return socket_.get(); }

 private:
  enum class State : std::uint8_t { kOpen, kFlushing, kClosed };
  enum class Sending : std::uint8_t { kPossible, kStarved, kPeerClosed };

  // Outlives the channel while one of its handlers runs. Owners: the channel, and each of its functions on the stack
  // that calls a handler.
  struct Shared {
    ChannelHandlers handlers;
    bool destroyed = false;
  };

  SeqpacketChannel(EventLoop& loop, UniqueFd socket, ChannelHandlers handlers, ChannelLimits limits);
  Status watch();
  void on_ready(Readiness readiness);
  void receive();
  SendOutcome try_to_send(OutgoingMessage& message) const;
  void flush();
  void queue_emptied();
  void drop_queue();
  void retry_later();
  void read_later();
  void update_interest();
  void finish(Error reason);
  void finish_soon(Error reason);

  EventLoop& loop_;
  UniqueFd socket_;
  ChannelLimits limits_;
  std::size_t inline_limit_ = 0;
  std::shared_ptr<Shared> shared_;
  State state_ = State::kOpen;
  Sending sending_ = Sending::kPossible;
  bool paused_ = false;
  bool has_more_ = true;  // when it was asked for more than one frame last
  int single_turns_ = 0;  // since then
  WatchId watch_ = 0;     // 0: descriptors are too short for what comes
  Interest interest_ = Interest::kRead;
  std::optional<TimerId> retry_timer_;
  std::optional<TimerId> read_timer_;
  std::optional<TimerId> finish_timer_;
  std::deque<OutgoingMessage> queue_;
  std::size_t pending_bytes_ = 0;
};

}  // namespace monarch
