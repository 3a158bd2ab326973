#include "worker/rank/door_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

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

constexpr int kStarvedMilliseconds = 5;  // nothing tells that there is memory, or a descriptor, again

struct Awaited {
  int fd = -1;
  short events = 0;
  int stop = -1;
  int wake = -1;
};

// False: `until` has passed, or `wake` is readable. kGone: `stop` is.
Result<bool> wait_until(const Awaited& awaited, Instant until) {
  for (;;) {
    int milliseconds = -1;
    if (until != Instant::never()) {
      constexpr std::int64_t kLongest = 1'000'000;
      const std::int64_t left = (until - boot_now()).count_milliseconds();
      milliseconds = static_cast<int>(left < 0 ? 0 : std::min(left + 1, kLongest));
    }
    // A negative one is left out: poll(2).
    pollfd waiting[] = {{awaited.fd, awaited.events, 0}, {awaited.stop, POLLIN, 0}, {awaited.wake, POLLIN, 0}};
    const int ready = ::poll(waiting, 3, milliseconds);
    if (ready < 0 && errno != EINTR) return errno_error("waiting for the post", errno);
    if (ready > 0 && waiting[1].revents != 0) return Error{ErrorCode::kGone, "this process is about to end"};
    if (ready > 0) return waiting[0].revents != 0;
    if (boot_now() >= until) return false;
  }
}

// 0: it is none that is open.
std::uint64_t inode_of(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

Instant deadline_of(Duration patience) {
  return patience == Duration::forever() ? Instant::never() : boot_now() + patience;
}

}  // namespace

DoorClient::DoorClient(UniqueFd socket, std::shared_ptr<DoorMemory> memory, int stop)
    : socket_(std::move(socket)), inode_(inode_of(socket_.get())), memory_(std::move(memory)), stop_(stop) {}

bool DoorClient::has_its_socket() const { return inode_of(socket_.get()) == inode_; }

Result<std::unique_ptr<DoorClient>> DoorClient::come(const std::string& path, const PostHello& hello, Duration patience,
                                                     std::shared_ptr<DoorMemory> memory, int stop) {
  MONARCH_ASSIGN(UniqueFd socket, connect_seqpacket(path));
  std::unique_ptr<DoorClient> client(new DoorClient(std::move(socket), std::move(memory), stop));
  client->said_version_ = hello.version;
  MONARCH_TRY(client->send(hello));
  MONARCH_ASSIGN(const Heard heard, client->hear(patience));
  MONARCH_TRY(route(heard.frame.header, heard.frame.payload,
                    when<PostWelcome>([&](PostWelcome&& welcome) { client->welcome_ = std::move(welcome); })));
  return client;
}

template <class Message>
Status DoorClient::send_with(Message& message, CallBody& body, const BodyPieces& pieces, Instant until) {
  std::vector<UniqueFd> beside;
  body.bytes = pieces.bytes();
  body.way = body.bytes <= kBodyHereBytes ? BodyWay::kHere : BodyWay::kBeside;
  if (body.way == BodyWay::kHere) {
    body.here.data = pieces.joined();
  } else {
    MONARCH_ASSIGN(DoorMemory::Lent lent, memory_->lend(pieces, counts()));
    beside.push_back(std::move(lent.memory));
    body.from = lent.from;
    body.block = lent.block;
  }
  Status sent = send_frame(frame_of(message), std::move(beside), until);
  if (!sent.ok() && body.block != 0) memory_->freed(body.block);
  return sent;
}

Status DoorClient::send(PostCall call, const BodyPieces& arguments) {
  return send_with(call, call.body, arguments, call.deadline.value_or(Instant::never()));
}

Status DoorClient::send(PostReply reply, const BodyPieces& value) {
  return send_with(reply, reply.outcome.body, value, Instant::never());
}

Status DoorClient::send_frame(const Frame& frame, std::vector<UniqueFd> descriptors, Instant until) {
  MONARCH_ASSIGN(const OutgoingMessage message,
                 pack_message(frame, std::move(descriptors), limits::kSeqpacketInlineBytes));
  const Awaited room{.fd = socket_.get(), .events = POLLOUT, .stop = stop_};
  const Awaited nothing{.fd = socket_.get(), .events = 0, .stop = stop_};
  const auto try_once = [&] {
    const std::lock_guard lock(sending_);
    return send_message(socket_.get(), message);
  };
  for (;;) {
    switch (try_once()) {
      case SendOutcome::kSent: tell_let_go(); return {};  // another thread could not meanwhile
      case SendOutcome::kFull: {
        MONARCH_ASSIGN(const bool has_room, wait_until(room, until));
        if (!has_room) return Error{ErrorCode::kTimeout, "the post does not read"};
        break;
      }
      case SendOutcome::kStarved: {
        MONARCH_TRY(wait_until(nothing, boot_now() + Duration::milliseconds(kStarvedMilliseconds)));
        if (boot_now() >= until) return Error{ErrorCode::kTimeout, "the kernel has no memory for messages"};
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

Result<DoorBody> DoorClient::take(CallBody body, std::vector<UniqueFd>& beside) const {
  return DoorBody::take(std::move(body), beside, &memory_->kept());
}

void DoorClient::let_go(const PostLetGo& word) {
  {
    const std::lock_guard lock(letting_go_);
    let_go_.push_back(word);
  }
  tell_let_go();
}

void DoorClient::tell_let_go() {
  const std::lock_guard lock(letting_go_);
  while (!let_go_.empty()) {
    const Status told = try_frame(frame_of(let_go_.front()));
    if (!told.ok() && told.error().code == ErrorCode::kBusy) return;  // with what is sent or heard next
    let_go_.pop_front();
  }
}

Result<DoorClient::Heard> DoorClient::hear(Duration patience) {
  const Instant until = deadline_of(patience);
  for (;;) {
    MONARCH_ASSIGN(const bool ready, wait_for_word(until, -1));
    if (!ready) return Error{ErrorCode::kTimeout, text("the post has said nothing for ", to_text(patience))};
    MONARCH_ASSIGN(std::optional<Heard> heard, try_to_hear());
    if (heard) return std::move(*heard);
  }
}

Result<bool> DoorClient::wait_for_word(Instant until, int wake) const {
  return wait_until({.fd = socket_.get(), .events = POLLIN, .stop = stop_, .wake = wake}, until);
}

Result<std::optional<DoorClient::Heard>> DoorClient::try_to_hear() {
  auto received = receive_message(socket_.get(), limits::kSeqpacketPayloadBytes);
  if (!received.ok() && received.error().code == ErrorCode::kBusy) {
    const Awaited nothing{.fd = -1, .events = 0, .stop = stop_};
    MONARCH_TRY(wait_until(nothing, boot_now() + Duration::milliseconds(kStarvedMilliseconds)));
    return std::optional<Heard>();
  }
  if (!received.ok()) return std::move(received).error();
  if (!*received) return std::optional<Heard>();
  ReceivedMessage& message = **received;
  tell_let_go();  // the post reads again
  if (is_a<PostFree>(message.frame.header)) {
    MONARCH_ASSIGN(const PostFree free, decode_payload<PostFree>(message.frame.payload));
    memory_->freed(free.block, free.unsure ? MemoryPool::Word::kUnsure : MemoryPool::Word::kSure);
    return std::optional<Heard>();
  }
  if (!is_a<PostClosed>(message.frame.header)) {
    return std::optional(Heard{std::move(message.frame), std::move(message.descriptors)});
  }
  MONARCH_ASSIGN(const PostClosed closed, decode_payload<PostClosed>(message.frame.payload));
  return Error{ErrorCode::kGone, text("the post has closed the connection: ", closed.why)};
}

// WARNING: shutdown(2) wakes whoever waits in poll(2), close(2) does not.
void DoorClient::close() {
  (void)::shutdown(socket_.get(), SHUT_RDWR);
  if (counts()) memory_->give_up_lent();
}

}  // namespace monarch
