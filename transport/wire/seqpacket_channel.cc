#include "transport/wire/seqpacket_channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kFramesPerTurn = 64;     // then other descriptors get their turn; the loop comes back for the rest
constexpr int kAsksForMoreEvery = 16;  // turns, where there was one frame alone when it was asked last
constexpr int kSendBufferBytes = 256 << 10;
constexpr Duration kRetryAfter = Duration::milliseconds(10);  // when the kernel lacks memory or descriptor slots

// WARNING: a message longer than the sender's SO_SNDBUF fails with EMSGSIZE, whatever the receiver has (unix(7)). The
// system may grant less than we ask for (net.core.wmem_max); then more payloads travel as memfds.
Result<std::size_t> prepare_send_buffer(int fd) {
  if (::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof kSendBufferBytes) != 0) {
    return errno_error("setting a socket's SO_SNDBUF", errno);
  }
  int granted = 0;
  socklen_t size = sizeof granted;
  if (::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &granted, &size) != 0) {
    return errno_error("reading a socket's SO_SNDBUF", errno);
  }
  const std::size_t half = static_cast<std::size_t>(granted) / 2;
  const std::size_t overhead = kEnvelopeBytes + kFrameHeaderBytes;
  return std::min(limits::kSeqpacketInlineBytes, half > overhead ? half - overhead : 0);
}

Error closed_here() { return Error{ErrorCode::kGone, "the connection was closed on this side"}; }

}  // namespace

Result<std::unique_ptr<SeqpacketChannel>> SeqpacketChannel::create(EventLoop& loop, UniqueFd socket,
                                                                   ChannelHandlers handlers, ChannelLimits limits) {
  MONARCH_ASSERT(handlers.on_frame && handlers.on_closed);
  MONARCH_ASSIGN(const std::size_t inline_limit, prepare_send_buffer(socket.get()));
  std::unique_ptr<SeqpacketChannel> channel(new SeqpacketChannel(loop, std::move(socket), std::move(handlers), limits));
  channel->inline_limit_ = inline_limit;
  if (const Status watched = channel->watch(); !watched.ok()) {
    channel->state_ = State::kClosed;
    return watched.error();
  }
  return channel;
}

Status SeqpacketChannel::watch() {
  MONARCH_ASSIGN(watch_, loop_.watch(socket_.get(), interest_, [this](Readiness readiness) { on_ready(readiness); }));
  return {};
}

SeqpacketChannel::SeqpacketChannel(EventLoop& loop, UniqueFd socket, ChannelHandlers handlers, ChannelLimits limits)
    : loop_(loop),
      socket_(std::move(socket)),
      limits_(limits),
      shared_(std::make_shared<Shared>(Shared{.handlers = std::move(handlers)})) {}

SeqpacketChannel::~SeqpacketChannel() {
  shared_->destroyed = true;
  if (watch_ != 0) loop_.forget(watch_);
  if (retry_timer_) loop_.cancel(*retry_timer_);
  if (read_timer_) loop_.cancel(*read_timer_);
  if (finish_timer_) loop_.cancel(*finish_timer_);
}

Status SeqpacketChannel::send(const Frame& frame, std::vector<UniqueFd> descriptors, LateDescriptor late) {
  if (state_ != State::kOpen) return closed_here();
  if (sending_ == Sending::kPeerClosed) return Error{ErrorCode::kGone, "the peer closed the connection"};
  if (!queue_.empty() &&
      (queue_.size() >= limits_.queue_frames || pending_bytes_ + frame.payload.size() > limits_.queue_bytes)) {
    return Error{ErrorCode::kBusy,
                 text("the peer does not read: ", queue_.size(), " frames of ", pending_bytes_, " bytes wait")};
  }
  MONARCH_ASSIGN(OutgoingMessage message,
                 pack_message_to_wait(frame, std::move(descriptors), std::move(late), inline_limit_));
  const SendOutcome outcome = queue_.empty() ? try_to_send(message) : SendOutcome::kFull;
  switch (outcome) {
    case SendOutcome::kSent: return {};
    case SendOutcome::kStarved: retry_later(); break;
    case SendOutcome::kFull: break;
    case SendOutcome::kPeerClosed:
      sending_ = Sending::kPeerClosed;  // what it sent before is still read; the end follows in the loop
      return Error{ErrorCode::kGone, "the peer closed the connection"};
    case SendOutcome::kFailed: {
      Error error = errno_error(ErrorCode::kInternal, "sending a message", errno);
      finish_soon(error);
      return error;
    }
  }
  pending_bytes_ += message.charge;
  queue_.push_back(std::move(message));
  update_interest();
  return {};
}

void SeqpacketChannel::close() {
  if (state_ != State::kOpen) return;
  state_ = State::kFlushing;
  if (queue_.empty()) finish_soon(closed_here());
  update_interest();
}

void SeqpacketChannel::pause() {
  paused_ = true;
  update_interest();
}

void SeqpacketChannel::resume() {
  paused_ = false;
  update_interest();
}

void SeqpacketChannel::on_ready(Readiness readiness) {
  const std::shared_ptr<Shared> shared = shared_;
  // The loop tells of that whatever is waited for, and would do so again at once.
  if (readiness.hangup) paused_ = false;
  if (state_ == State::kOpen && (readiness.readable || readiness.hangup)) receive();
  if (shared->destroyed || state_ == State::kClosed) return;
  // While it flushes nothing is read, and only a failing send shows that the peer is gone.
  if (!queue_.empty() && (readiness.writable || (readiness.hangup && state_ == State::kFlushing))) flush();
}

void SeqpacketChannel::receive() {
  const std::shared_ptr<Shared> shared = shared_;
  // Who sends one frame at a time, as an actor that answers does, is not asked each time whether there are more.
  const bool asks = has_more_ || ++single_turns_ >= kAsksForMoreEvery;
  if (asks) {
    has_more_ = false;
    single_turns_ = 0;
  }
  const int most = asks ? kFramesPerTurn : 1;
  for (int i = 0; i < most && state_ == State::kOpen && !paused_; ++i) {
    auto received = receive_message(socket_.get(), limits_.payload_bytes);
    if (!received.ok() && received.error().code == ErrorCode::kBusy) return read_later();
    if (!received.ok()) return finish(std::move(received).error());
    if (!received->has_value()) return;
    has_more_ = i > 0;
    shared->handlers.on_frame(std::move((*received)->frame), std::move((*received)->descriptors));
    if (shared->destroyed) return;
  }
}

SendOutcome SeqpacketChannel::try_to_send(OutgoingMessage& message) const {
  const Status complete = complete_message(message);
  if (complete.ok()) return send_message(socket_.get(), message);
  errno = complete.error().errno_value;
  const bool is_short = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOSPC;
  return is_short ? SendOutcome::kStarved : SendOutcome::kFailed;
}

void SeqpacketChannel::flush() {
  while (!queue_.empty()) {
    switch (try_to_send(queue_.front())) {
      case SendOutcome::kSent:
        sending_ = Sending::kPossible;
        pending_bytes_ -= queue_.front().charge;
        queue_.pop_front();
        break;
      case SendOutcome::kFull: sending_ = Sending::kPossible; return update_interest();
      case SendOutcome::kStarved: retry_later(); return update_interest();
      case SendOutcome::kPeerClosed:
        sending_ = Sending::kPeerClosed;
        drop_queue();
        if (state_ == State::kFlushing) return finish(Error{ErrorCode::kGone, "the peer closed before it read all"});
        return update_interest();
      case SendOutcome::kFailed: return finish(errno_error(ErrorCode::kInternal, "sending a message", errno));
    }
  }
  queue_emptied();
}

void SeqpacketChannel::queue_emptied() {
  if (state_ == State::kFlushing) return finish(closed_here());
  update_interest();
  const std::shared_ptr<Shared> shared = shared_;
  if (shared->handlers.on_drained) shared->handlers.on_drained();
}

void SeqpacketChannel::drop_queue() {
  queue_.clear();
  pending_bytes_ = 0;
}

void SeqpacketChannel::retry_later() {
  sending_ = Sending::kStarved;
  if (retry_timer_) return;
  retry_timer_ = loop_.at(loop_.now() + kRetryAfter, [this] {
    retry_timer_.reset();
    if (!queue_.empty()) flush();
  });
}

// Not watched meanwhile: a loop tells of a peer that has closed again and again.
void SeqpacketChannel::read_later() {
  loop_.forget(std::exchange(watch_, 0));
  read_timer_ = loop_.at(loop_.now() + kRetryAfter, [this] {
    read_timer_.reset();
    if (const Status watched = watch(); !watched.ok()) return finish(watched.error());
    update_interest();
    if (!queue_.empty()) flush();
  });
}

void SeqpacketChannel::update_interest() {
  if (state_ == State::kClosed || watch_ == 0) return;
  // A starved socket is writable all the time: waiting for that would spin.
  const bool write = !queue_.empty() && sending_ == Sending::kPossible;
  const bool read = state_ == State::kOpen && !paused_;
  const Interest wanted =
      read ? (write ? Interest::kReadWrite : Interest::kRead) : (write ? Interest::kWrite : Interest::kNone);
  if (wanted == interest_) return;
  interest_ = wanted;
  loop_.change(watch_, wanted);
}

void SeqpacketChannel::finish(Error reason) {
  MONARCH_ASSERT(state_ != State::kClosed);
  state_ = State::kClosed;
  if (watch_ != 0) loop_.forget(std::exchange(watch_, 0));
  socket_.reset();
  drop_queue();
  if (read_timer_) loop_.cancel(*std::exchange(read_timer_, std::nullopt));
  if (retry_timer_) loop_.cancel(*std::exchange(retry_timer_, std::nullopt));
  if (finish_timer_) loop_.cancel(*std::exchange(finish_timer_, std::nullopt));
  const std::shared_ptr<Shared> shared = shared_;
  shared->handlers.on_closed(std::move(reason));
}

void SeqpacketChannel::finish_soon(Error reason) {
  state_ = State::kFlushing;
  drop_queue();
  if (finish_timer_) return;
  finish_timer_ = loop_.at(loop_.now(), [this, reason = std::move(reason)] {
    finish_timer_.reset();
    finish(reason);
  });
}

}  // namespace monarch
