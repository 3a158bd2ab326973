#include "worker/rank/door_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"
#include "transport/wire/codec.h"
#include "transport/wire/seqpacket_message.h"
#include "transport/wire/seqpacket_socket.h"

namespace monarch {

namespace {

constexpr int kStarvedMilliseconds = 5;  // nothing tells that the kernel has room again

// False: `until` has passed. kGone: `stop` is readable.
Result<bool> wait_until(int fd, short events, Instant until, int stop) {
  for (;;) {
    const Instant now = boot_now();
    if (now >= until) return false;
    int milliseconds = -1;
    if (until != Instant::never()) {
      constexpr std::int64_t kLongest = 1'000'000;
      milliseconds = static_cast<int>(std::min((until - now).count_milliseconds() + 1, kLongest));
    }
    pollfd waiting[] = {{fd, events, 0}, {stop, POLLIN, 0}};  // a negative one is left out: poll(2)
    const int ready = ::poll(waiting, 2, milliseconds);
    if (ready > 0 && waiting[1].revents != 0) return Error{ErrorCode::kGone, "this process is about to end"};
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return errno_error("waiting for the post", errno);
  }
}

Instant deadline_of(Duration patience) {
  return patience == Duration::forever() ? Instant::never() : boot_now() + patience;
}

}  // namespace

Result<DoorBody> DoorBody::take(CallBody body, std::vector<UniqueFd>& beside) {
  DoorBody taken;
  switch (body.way) {
    case BodyWay::kNone: return taken;
    case BodyWay::kHere: taken.here_ = std::move(body.here.data); return taken;
    case BodyWay::kBeside: break;
  }
  if (beside.empty()) return Error{ErrorCode::kInvalid, "a body without its descriptor"};
  MONARCH_ASSIGN(const std::uint64_t size, lent_memory_size(beside.front().get()));
  if (size < body.bytes || body.bytes == 0) {
    return Error{ErrorCode::kInvalid, text("memory of ", size, " bytes for a body that has ", body.bytes)};
  }
  MONARCH_ASSIGN(taken.mapped_, MappedMemory::map(beside.front().get(), body.bytes));
  return taken;
}

Result<std::unique_ptr<DoorClient>> DoorClient::come(const std::string& path, const PostHello& hello, Duration patience,
                                                     std::shared_ptr<MemoryPool> memory, int stop) {
  MONARCH_ASSIGN(UniqueFd socket, connect_seqpacket(path));
  std::unique_ptr<DoorClient> client(new DoorClient(std::move(socket), std::move(memory), stop));
  MONARCH_TRY(client->send(hello));
  MONARCH_ASSIGN(const Heard heard, client->hear(patience));
  MONARCH_TRY(route(heard.frame.header, heard.frame.payload,
                    when<PostWelcome>([&](PostWelcome&& welcome) { client->welcome_ = std::move(welcome); })));
  return client;
}

template <class Message>
Status DoorClient::send_with(Message& message, CallBody& body, std::string_view bytes) {
  std::vector<UniqueFd> beside;
  body.bytes = bytes.size();
  body.way = bytes.size() <= kBodyHereBytes ? BodyWay::kHere : BodyWay::kBeside;
  if (body.way == BodyWay::kHere) {
    body.here.data = bytes;
  } else {
    MONARCH_ASSIGN(UniqueFd lent, memory_->lend(bytes));
    beside.push_back(std::move(lent));
  }
  return send_frame(frame_of(message), std::move(beside));
}

Status DoorClient::send(PostCall call, std::string_view arguments) { return send_with(call, call.body, arguments); }

Status DoorClient::send(PostReply reply, std::string_view value) { return send_with(reply, reply.outcome.body, value); }

Status DoorClient::send_frame(const Frame& frame, std::vector<UniqueFd> descriptors) {
  MONARCH_ASSIGN(const OutgoingMessage message,
                 pack_message(frame, std::move(descriptors), limits::kSeqpacketInlineBytes));
  const std::lock_guard lock(sending_);
  for (;;) {
    switch (send_message(socket_.get(), message)) {
      case SendOutcome::kSent: return {};
      case SendOutcome::kFull: {
        MONARCH_TRY(wait_until(socket_.get(), POLLOUT, Instant::never(), stop_));
        break;
      }
      case SendOutcome::kStarved: {
        MONARCH_TRY(wait_until(socket_.get(), 0, boot_now() + Duration::milliseconds(kStarvedMilliseconds), stop_));
        break;
      }
      case SendOutcome::kPeerClosed: return Error{ErrorCode::kGone, "the post has closed the connection"};
      case SendOutcome::kFailed: return errno_error("sending to the post", errno);
    }
  }
}

Status DoorClient::try_frame(const Frame& frame) {
  MONARCH_ASSIGN(const OutgoingMessage message, pack_message(frame, {}, limits::kSeqpacketInlineBytes));
  const std::unique_lock lock(sending_, std::try_to_lock);
  if (!lock.owns_lock()) return Error{ErrorCode::kBusy, "another message is being sent"};
  switch (send_message(socket_.get(), message)) {
    case SendOutcome::kSent: return {};
    case SendOutcome::kFull:
    case SendOutcome::kStarved: return Error{ErrorCode::kBusy, "the post does not read"};
    case SendOutcome::kPeerClosed: return Error{ErrorCode::kGone, "the post has closed the connection"};
    case SendOutcome::kFailed: break;
  }
  return errno_error("sending to the post", errno);
}

Result<DoorClient::Heard> DoorClient::hear(Duration patience) {
  const Instant until = deadline_of(patience);
  for (;;) {
    MONARCH_ASSIGN(const bool ready, wait_until(socket_.get(), POLLIN, until, stop_));
    if (!ready) return Error{ErrorCode::kTimeout, text("the post has said nothing for ", to_text(patience))};
    MONARCH_ASSIGN(auto received, receive_message(socket_.get(), limits::kSeqpacketPayloadBytes));
    if (!received) continue;
    if (!is_a<PostClosed>(received->frame.header)) {
      return Heard{std::move(received->frame), std::move(received->descriptors)};
    }
    MONARCH_ASSIGN(const PostClosed closed, decode_payload<PostClosed>(received->frame.payload));
    return Error{ErrorCode::kGone, text("the post has closed the connection: ", closed.why)};
  }
}

// WARNING: shutdown(2) wakes whoever waits in poll(2), close(2) does not.
void DoorClient::close() { (void)::shutdown(socket_.get(), SHUT_RDWR); }

}  // namespace monarch
