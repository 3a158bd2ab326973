#pragma once

// FarPipe: the part of a far viewer's connection that both its ends have in common. What comes from a SEQPACKET socket
// of this machine goes out over a ZeroMQ link, a frame a message of two parts (header, payload), and what comes over
// the link goes into the socket. Where the link is full the socket is not read, so whoever writes into it waits or
// drops as it would for a viewer of its own machine.
//
// A message of one part is the two ends' own: FarWord.
//
// Thread: the loop's. Lifetime: shorter than the loop's.

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/wire/seqpacket_channel.h"
#include "transport/zmq/frame.h"
#include "transport/zmq/link_options.h"

namespace monarch {

// How often a viewer says that it is there, and when whoever has not said so is gone.
inline constexpr Duration kFarSignPeriod = Duration::seconds(5);
inline constexpr Duration kFarSilence = Duration::seconds(20);

// Of the viewer's end, which may be sent much at once, and of the supervisor's, which is asked in few words.
LinkOptions far_viewer_options();
LinkOptions far_supervisor_options();

enum class FarWordKind : std::uint8_t {
  kHello,  // a viewer's first, answered by kAlive or kEnd
  kAlive,
  kEnd,
};
struct FarWord {
  FarWordKind kind = FarWordKind::kAlive;
  std::string why = {};  // of an end: one line for people
  bool operator==(const FarWord&) const = default;
};
std::vector<ZmqFrame> far_message(const FarWord& word);
// Nothing: it is no message of that kind.
std::optional<FarWord> far_word(const std::vector<ZmqFrame>& frames);

class FarPipe {
 public:
  struct Handlers {
    // Over the link. kBusy: it is full, and the frames are still ours.
    std::function<Status(std::vector<ZmqFrame>&)> send;
    // Once, and nothing after it; it may destroy the pipe. The socket's other end has closed it, or finish() did, and
    // the other end of the link was told; or the link is gone.
    std::function<void(const Error&)> on_end;
    // Nothing waits any more for the socket's other end to read.
    std::function<void()> on_drained = {};
  };
  static Result<std::unique_ptr<FarPipe>> create(EventLoop& loop, UniqueFd socket, Handlers handlers);
  ~FarPipe();
  FarPipe(const FarPipe&) = delete;
  FarPipe& operator=(const FarPipe&) = delete;

  // Into the socket. kInvalid: it is no frame of ours; kBusy: its other end does not read.
  Status take(const std::vector<ZmqFrame>& frames);
  // Bytes, for the socket's other end to read.
  std::size_t waiting() const { return channel_->pending_bytes(); }
  // The other end of the link has ended: the socket is closed once its own other end has read what waits.
  void finish();

 private:
  FarPipe(EventLoop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}
  void on_frame(const Frame& frame);
  void on_closed(const Error& why);
  void flush();
  void end(const Error& why);

  EventLoop& loop_;
  Handlers handlers_;
  std::unique_ptr<SeqpacketChannel> channel_;
  std::deque<std::vector<ZmqFrame>>
      waiting_;                  // for the link: what one turn of the socket brings, or all that it had at its end
  std::optional<Error> closed_;  // the socket is, why
  TimerId again_ = 0;
};

}  // namespace monarch
