#include "transport/wire/frame_stream.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "transport/base/little_endian.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);
constexpr std::size_t kPiece = 64U << 10U;
constexpr int kPiecesPerTurn = 16;  // then other descriptors get their turn

Status unblock(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return errno_error("fcntl O_NONBLOCK", errno);
  return {};
}

// A pipe knows no MSG_NOSIGNAL: its writer ignores SIGPIPE, or reads it by signalfd.
ssize_t write_some(int fd, const std::string& bytes) {
  const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  return ::write(fd, bytes.data(), bytes.size());
}

}  // namespace

std::string stream_bytes(const Frame& frame) {
  const std::size_t size = kFrameHeaderBytes + frame.payload.size();
  std::string bytes;
  bytes.reserve(kLengthBytes + size);
  little_endian::put(bytes, static_cast<std::uint32_t>(size));
  return bytes + encode_frame(frame);
}

Result<std::unique_ptr<FrameStream>> FrameStream::create(EventLoop& loop, UniqueFd input, UniqueFd output,
                                                         FrameStreamHandlers handlers, FrameStreamLimits limits) {
  MONARCH_ASSERT(handlers.on_frame && handlers.on_closed);
  MONARCH_TRY(unblock(input.get()));
  MONARCH_TRY(unblock(output.get()));
  std::unique_ptr<FrameStream> stream(
      new FrameStream(loop, std::move(input), std::move(output), std::move(handlers), limits));
  FrameStream* self = stream.get();
  MONARCH_ASSIGN(stream->reads_,
                 loop.watch(stream->input_.get(), Interest::kRead, [self](Readiness) { self->receive(); }));
  return stream;
}

FrameStream::FrameStream(EventLoop& loop, UniqueFd input, UniqueFd output, FrameStreamHandlers handlers,
                         FrameStreamLimits limits)
    : loop_(loop),
      input_(std::move(input)),
      output_(std::move(output)),
      handlers_(std::make_shared<const FrameStreamHandlers>(std::move(handlers))),
      limits_(limits) {}

FrameStream::~FrameStream() {
  if (reads_ != 0) loop_.forget(reads_);
  if (writes_ != 0) loop_.forget(writes_);
}

Status FrameStream::send(const Frame& frame) {
  if (reads_ == 0 || unread_) return Error{ErrorCode::kGone, "nobody reads at the other end"};
  if (frame.payload.size() > limits_.payload_bytes) {
    return Error{ErrorCode::kInvalid,
                 text("a payload of ", frame.payload.size(), " bytes is over ", limits_.payload_bytes)};
  }
  if (!waiting_.empty() && waiting_.size() + frame.payload.size() > limits_.queue_bytes) {
    return Error{ErrorCode::kBusy, text("the peer does not read: ", waiting_.size(), " bytes wait")};
  }
  waiting_ += stream_bytes(frame);
  flush();
  if (unread_) return Error{ErrorCode::kGone, "nobody reads at the other end"};
  return {};
}

void FrameStream::flush() {
  while (!waiting_.empty()) {
    const ssize_t sent = write_some(output_.get(), waiting_);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && is_later(errno)) break;
    if (sent < 0) {
      // What it sent before is still read; the end follows in the loop.
      unread_ = true;
      waiting_.clear();
      break;
    }
    waiting_.erase(0, static_cast<std::size_t>(sent));
  }
  if (waiting_.empty()) {
    if (writes_ != 0) loop_.forget(std::exchange(writes_, 0));
    return;
  }
  if (writes_ != 0) return;
  auto watch = loop_.watch(output_.get(), Interest::kWrite, [this](Readiness) { flush(); });
  if (watch.ok()) {
    writes_ = *watch;
    return;
  }
  unread_ = true;
  waiting_.clear();
}

void FrameStream::receive() {
  std::array<char, kPiece> piece{};
  for (int i = 0; i < kPiecesPerTurn; ++i) {
    const ssize_t got = ::read(input_.get(), piece.data(), piece.size());
    if (got < 0 && is_later(errno)) return;
    if (got < 0) return finish(errno_error("reading frames", errno));
    if (got == 0 && !heard_.empty()) return finish({ErrorCode::kGone, "the connection ended within a frame"});
    if (got == 0) return finish({ErrorCode::kGone, "the connection ended"});
    heard_.append(piece.data(), static_cast<std::size_t>(got));
    if (!take_frames()) return;
  }
}

// Whether it still stands.
bool FrameStream::take_frames() {
  while (heard_.size() >= kLengthBytes) {
    const std::size_t size = little_endian::get<std::uint32_t>(heard_, 0);
    if (size < kFrameHeaderBytes || size > kFrameHeaderBytes + limits_.payload_bytes) {
      finish({ErrorCode::kInvalid, text("no frame has ", size, " bytes")});
      return false;
    }
    if (heard_.size() < kLengthBytes + size) return true;
    auto frame = decode_frame(std::string_view(heard_).substr(kLengthBytes, size), limits_.payload_bytes);
    heard_.erase(0, kLengthBytes + size);
    if (!frame.ok()) {
      finish(frame.error());
      return false;
    }
    {
      const auto handlers = handlers_;
      handlers->on_frame(std::move(*frame));
      if (handlers.use_count() == 1) return false;  // ours alone: this was destroyed
    }
  }
  return true;
}

void FrameStream::finish(Error why) {
  loop_.forget(std::exchange(reads_, 0));
  if (writes_ != 0) loop_.forget(std::exchange(writes_, 0));
  const auto handlers = handlers_;
  handlers->on_closed(std::move(why));
}

}  // namespace monarch
