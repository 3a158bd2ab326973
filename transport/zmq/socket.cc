#include "transport/zmq/socket.h"

#include <zmq.h>

#include <array>
#include <cerrno>

#include "transport/base/text.h"

namespace monarch {

namespace {

// A frame as a message of CURVE (RFC 26: 8 bytes of name, 8 of nonce, 16 of the box, 1 of flags) within a frame of ZMTP
// (RFC 23: flags, and 1 or 8 bytes of size).
std::uint64_t travelling_bytes(std::uint64_t frame) {
  constexpr std::uint64_t kAround = 33;
  constexpr std::uint64_t kLong = 256;
  const std::uint64_t boxed = frame + kAround;
  return boxed + (boxed < kLong ? 2 : 9);
}

}  // namespace

Result<std::unique_ptr<ZmqSocket>> ZmqSocket::create(ZmqContext& context, int kind) {
  void* native = zmq_socket(context.native(), kind);
  if (native == nullptr) return zmq_error("making a zmq socket", errno);
  context.open_sockets_.fetch_add(1);
  std::unique_ptr<ZmqSocket> socket(new ZmqSocket(context, native));
  // Without this the end of the context waits for a peer that may never read.
  MONARCH_TRY(socket->set(ZMQ_LINGER, 0));
  return socket;
}

ZmqSocket::~ZmqSocket() {
  MONARCH_ASSERT(zmq_close(native_) == 0);
  context_.open_sockets_.fetch_sub(1);
}

void* ZmqSocket::used() {
  may_be_readable_ = true;
  if (hears_) hears_();
  return native_;
}

Result<int> ZmqSocket::descriptor() const {
  int descriptor = -1;
  std::size_t size = sizeof descriptor;
  if (zmq_getsockopt(native_, ZMQ_FD, &descriptor, &size) == 0) return descriptor;
  return zmq_error("asking for the descriptor of a socket", errno);
}

ZmqSocket::Events ZmqSocket::events() {
  int events = 0;
  std::size_t size = sizeof events;
  while (zmq_getsockopt(native_, ZMQ_EVENTS, &events, &size) != 0) {
    MONARCH_ASSERT(errno == EINTR);  // ETERM would be a context ended too early
  }
  may_be_readable_ = (events & ZMQ_POLLIN) != 0;
  return {.readable = may_be_readable_, .writable = (events & ZMQ_POLLOUT) != 0};
}

Status ZmqSocket::set(int option, int value) {
  if (zmq_setsockopt(used(), option, &value, sizeof value) == 0) return {};
  return zmq_error(text("setting zmq option ", option, " to ", value), errno);
}

Status ZmqSocket::set_wide(int option, std::int64_t value) {
  if (zmq_setsockopt(used(), option, &value, sizeof value) == 0) return {};
  return zmq_error(text("setting zmq option ", option, " to ", value), errno);
}

Status ZmqSocket::set_bytes(int option, std::string_view value) {
  if (zmq_setsockopt(used(), option, value.data(), value.size()) == 0) return {};
  return zmq_error(text("setting zmq option ", option), errno);  // the value may be a secret
}

Status ZmqSocket::bind(const std::string& endpoint) {
  if (zmq_bind(used(), endpoint.c_str()) == 0) return {};
  return zmq_error(text("binding ", endpoint), errno);
}

Status ZmqSocket::connect(const std::string& endpoint) {
  if (zmq_connect(used(), endpoint.c_str()) == 0) return {};
  return zmq_error(text("connecting to ", endpoint), errno);
}

Result<std::string> ZmqSocket::last_endpoint() const {
  std::array<char, 256> buffer{};
  std::size_t size = buffer.size();
  if (zmq_getsockopt(native_, ZMQ_LAST_ENDPOINT, buffer.data(), &size) != 0) {
    return zmq_error("asking for the bound endpoint", errno);
  }
  return std::string(buffer.data());
}

Status ZmqSocket::send(std::span<ZmqFrame> frames) {
  MONARCH_ASSERT(!frames.empty());
  void* const socket = used();
  int failed = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const int flags = ZMQ_DONTWAIT | (i + 1 < frames.size() ? ZMQ_SNDMORE : 0);
    int sent = -1;
    do {
      sent = zmq_msg_send(static_cast<zmq_msg_t*>(frames[i].native()), socket, flags);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) continue;
    failed = errno;
    if (i == 0) return zmq_error("sending", failed);
    // WARNING: a DEALER whose peer leaves midway drops every frame up to the message's last one (lb.cpp, 4.3.4). The
    // rest has to be sent, or the next message would be dropped in its place.
  }
  if (failed != 0) return Error{ErrorCode::kGone, "sending: the peer left in the middle of the message"};
  return {};
}

ZmqSocket::Taken ZmqSocket::receive(std::vector<ZmqFrame>& frames, std::size_t limit, std::size_t names,
                                    ZmqArrival* arrival) {
  frames.clear();
  void* const socket = used();
  std::size_t count = 0;
  for (;;) {
    ZmqFrame frame;
    auto* raw = static_cast<zmq_msg_t*>(frame.native());
    if (zmq_msg_recv(raw, socket, ZMQ_DONTWAIT) < 0) {
      if (errno == EINTR) continue;
      // The parts of a message arrive together (zmq_msg_recv(3)); ETERM here would be a context ended too early.
      MONARCH_ASSERT(errno == EAGAIN && count == 0);
      // It says so after it has taken the edge, and all that came with it (socket_base.cpp): the next makes a new one.
      may_be_readable_ = false;
      return Taken::kNothing;
    }
    const bool more = zmq_msg_more(raw) != 0;
    if (arrival != nullptr && count >= names) {
      arrival->bytes += travelling_bytes(zmq_msg_size(raw));
      arrival->descriptor = zmq_msg_get(raw, ZMQ_SRCFD);
    }
    ++count;
    if (count <= limit) frames.push_back(std::move(frame));
    if (more) continue;
    if (count <= limit) return Taken::kMessage;
    frames.clear();
    return Taken::kTooManyFrames;
  }
}

}  // namespace monarch
