#include "supervisor/client/link/far_pipe.h"

#include <utility>

#include "transport/base/text.h"
#include "transport/wire/frame.h"

namespace monarch {

namespace {

constexpr Duration kSendAgain = Duration::milliseconds(20);
constexpr int kHighWaterMark = 64;
constexpr char kHello = 'h';
constexpr char kAlive = 'p';
constexpr char kEnd = 'e';

LinkOptions options_of(std::size_t payload_bytes) {
  LinkOptions options;
  options.high_water_mark = kHighWaterMark;
  options.message_bytes = payload_bytes + kFrameHeaderBytes;
  return options;
}

}  // namespace

LinkOptions far_viewer_options() { return options_of(limits::kSeqpacketPayloadBytes); }

LinkOptions far_supervisor_options() { return options_of(limits::kControlPayloadBytes); }

std::vector<ZmqFrame> far_message(const FarWord& word) {
  const char letter = word.kind == FarWordKind::kHello ? kHello : word.kind == FarWordKind::kAlive ? kAlive : kEnd;
  std::vector<ZmqFrame> frames;
  frames.push_back(ZmqFrame::take(text(letter, word.why)));
  return frames;
}

std::optional<FarWord> far_word(const std::vector<ZmqFrame>& frames) {
  if (frames.size() != 1 || frames[0].size() == 0) return std::nullopt;
  const std::string_view bytes = frames[0].bytes();
  if (bytes.front() == kEnd) return FarWord{.kind = FarWordKind::kEnd, .why = printable(bytes.substr(1))};
  if (bytes.size() != 1) return std::nullopt;
  if (bytes.front() == kHello) return FarWord{.kind = FarWordKind::kHello};
  if (bytes.front() == kAlive) return FarWord{.kind = FarWordKind::kAlive};
  return std::nullopt;
}

Result<std::unique_ptr<FarPipe>> FarPipe::create(EventLoop& loop, UniqueFd socket, Handlers handlers) {
  std::unique_ptr<FarPipe> pipe(new FarPipe(loop, std::move(handlers)));
  FarPipe* self = pipe.get();
  MONARCH_ASSIGN(pipe->channel_,
                 SeqpacketChannel::create(
                     loop, std::move(socket),
                     {.on_frame = [self](const Frame& frame, const std::vector<UniqueFd>&) { self->on_frame(frame); },
                      .on_closed = [self](const Error& why) { self->on_closed(why); },
                      .on_drained =
                          [self] {
                            if (self->handlers_.on_drained) self->handlers_.on_drained();
                          }}));
  return pipe;
}

FarPipe::~FarPipe() { loop_.cancel(again_); }

void FarPipe::on_frame(const Frame& frame) {
  std::vector<ZmqFrame> frames;
  frames.push_back(ZmqFrame::take(encode_header(frame.header)));
  frames.push_back(ZmqFrame::copy(frame.payload));
  waiting_.push_back(std::move(frames));
  if (again_ == 0) flush();
}

// The last that is said over the link, behind all that the socket had.
void FarPipe::on_closed(const Error& why) {
  closed_ = why;
  waiting_.push_back(far_message({.kind = FarWordKind::kEnd, .why = why.message}));
  if (again_ == 0) flush();
}

void FarPipe::finish() { channel_->close(); }

void FarPipe::flush() {
  while (!waiting_.empty()) {
    const Status sent = handlers_.send(waiting_.front());
    if (sent.ok()) {
      waiting_.pop_front();
      continue;
    }
    if (sent.error().code != ErrorCode::kBusy) {
      waiting_.clear();
      // Told by the loop: the channel is in the middle of something.
      again_ = loop_.at(loop_.now(), [this, why = sent.error()] {
        again_ = 0;
        end(why);
      });
      return channel_->pause();
    }
    channel_->pause();
    again_ = loop_.at(loop_.now() + kSendAgain, [this] {
      again_ = 0;
      flush();
    });
    return;
  }
  if (closed_) return end(*closed_);
  channel_->resume();
}

Status FarPipe::take(const std::vector<ZmqFrame>& frames) {
  constexpr std::size_t kParts = 2;
  if (frames.size() != kParts) return Error{ErrorCode::kInvalid, "a message of a viewer that has no two parts"};
  MONARCH_ASSIGN(const FrameHeader header, decode_header(frames[0].bytes()));
  return channel_->send({header, std::string(frames[1].bytes())});
}

void FarPipe::end(const Error& why) {
  const auto on_end = std::exchange(handlers_.on_end, nullptr);
  if (on_end) on_end(why);
}

}  // namespace monarch
