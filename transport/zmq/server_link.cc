#include "transport/zmq/server_link.h"

#include <zmq.h>

#include <array>
#include <charconv>
#include <utility>

#include "transport/base/text.h"
#include "transport/zmq/zap.h"

namespace monarch {

namespace {

// WARNING: option 93 is a draft macro that released headers hide and released libraries honour. Without it 4.3.4 lets
// every key in where no ZAP handler answers. It enforces nothing while the domain is empty (curve_server.cpp).
constexpr int kZapEnforceDomain = 93;

// All workers of a job may dial at once. libzmq's own 100 makes the kernel drop the rest, which dial again a second
// later.
constexpr int kBacklog = 1'024;

constexpr std::size_t kRoutingIdBytes = 5;  // a zero byte and 32 bits, big-endian: router.cpp names links so

Status prepare_server(ZmqSocket& socket, const ServerOptions& options, const CurveKeyPair& keys) {
  MONARCH_TRY(apply_link_options(socket, options.link, keys));
  MONARCH_TRY(socket.set(ZMQ_CURVE_SERVER, 1));
  MONARCH_TRY(socket.set_bytes(ZMQ_ZAP_DOMAIN, kZapDomain));
  MONARCH_TRY(socket.set(kZapEnforceDomain, 1));
  MONARCH_TRY(socket.set(ZMQ_BACKLOG, kBacklog));
  MONARCH_TRY(socket.set(ZMQ_ROUTER_MANDATORY, 1));
  MONARCH_TRY(socket.set(ZMQ_ROUTER_HANDOVER, 0));
  return socket.set(ZMQ_IPV6, is_ipv6(options.address) ? 1 : 0);
}

Status bind_one_of(ZmqSocket& socket, const ServerOptions& options) {
  if (options.listener >= 0) {
    MONARCH_TRY(socket.set(ZMQ_USE_FD, options.listener));
    MONARCH_ASSIGN(const std::string endpoint, tcp_endpoint(options.address, text(options.ports.first)));
    return socket.bind(endpoint);
  }
  if (options.ports.first == 0) {
    MONARCH_ASSIGN(const std::string endpoint, tcp_endpoint(options.address, "*"));
    return socket.bind(endpoint);
  }
  MONARCH_ASSERT(options.ports.first <= options.ports.last);
  for (std::uint32_t port = options.ports.first; port <= options.ports.last; ++port) {
    MONARCH_ASSIGN(const std::string endpoint, tcp_endpoint(options.address, text(port)));
    Status bound = socket.bind(endpoint);
    if (bound || bound.error().code != ErrorCode::kBusy) return bound;
  }
  return Error{ErrorCode::kBusy,
               text("every port of ", options.address, ":", options.ports.first, "-", options.ports.last, " is taken")};
}

Result<std::uint16_t> port_of(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  std::uint16_t port = 0;
  const char* end = endpoint.data() + endpoint.size();
  if (colon == std::string::npos || std::from_chars(endpoint.data() + colon + 1, end, port).ptr != end) {
    return Error{ErrorCode::kInternal, text("bound to `", endpoint, "`, which names no port")};
  }
  return port;
}

std::optional<LinkId> link_of(std::string_view name) {
  if (name.size() != kRoutingIdBytes || name[0] != '\0') return std::nullopt;
  std::uint32_t value = 0;
  for (const char byte : name.substr(1)) value = (value << 8U) | static_cast<unsigned char>(byte);
  return LinkId{value};
}

ZmqFrame routing_frame(LinkId link) {
  std::array<char, kRoutingIdBytes> bytes{};
  for (std::size_t i = 0; i < 4; ++i) bytes[i + 1] = static_cast<char>((link.value() >> (24U - 8U * i)) & 0xffU);
  return ZmqFrame::copy({bytes.data(), bytes.size()});
}

}  // namespace

ServerLink::ServerLink(std::unique_ptr<ZmqSocket> socket, std::unique_ptr<ZmqMonitor> monitor,
                       const ServerOptions& options)
    : socket_(std::move(socket)),
      monitor_(std::move(monitor)),
      message_bytes_(options.link.message_bytes),
      budget_(options.peer),
      unread_bytes_(options.link.unread_bytes) {}

Result<std::unique_ptr<ServerLink>> ServerLink::bind(ZmqContext& context, const ServerOptions& options,
                                                     const CurveKeyPair& keys) {
  MONARCH_ASSERT(options.link.io_thread < context.io_threads());
  MONARCH_ASSIGN(auto socket, ZmqSocket::create(context, ZMQ_ROUTER));
  MONARCH_TRY(prepare_server(*socket, options, keys));
  // Before the bind, so that no connection is missed.
  MONARCH_ASSIGN(auto monitor, ZmqMonitor::attach(context, *socket));
  MONARCH_TRY(bind_one_of(*socket, options));
  const std::optional<int> listener = monitor->listener();
  if (!listener) return Error{ErrorCode::kInternal, "libzmq did not say at which socket it listens"};
  MONARCH_ASSIGN(const std::string endpoint, socket->last_endpoint());
  std::unique_ptr<ServerLink> link(new ServerLink(std::move(socket), std::move(monitor), options));
  MONARCH_ASSIGN(link->port_, port_of(endpoint));
  link->listener_ = *listener;
  return link;
}

ServerLink::~ServerLink() {
  if (loop_ != nullptr) {
    loop_->forget(message_watch_);
    loop_->forget(monitor_watch_);
  }
}

void ServerLink::attach(ZmqLoop& loop, std::function<void(InboundMessage&&)> on_message) {
  MONARCH_ASSERT(loop_ == nullptr);
  loop_ = &loop;
  if (unread_bytes_ > 0) {
    unread_ = std::make_unique<UnreadPort>(loop.unread(), unread_bytes_ + message_bytes_);
    monitor_->when_connected([this](int descriptor) { unread_->opened(descriptor); });
  }
  message_watch_ = loop.watch(*socket_, [this, on_message = std::move(on_message)] {
    std::optional<InboundMessage> message;
    if (!receive_one(message)) return false;
    if (message) on_message(std::move(*message));
    return true;
  });
  monitor_watch_ = loop.watch(
      monitor_->socket(),
      [this] {
        const auto event = monitor_->next();
        if (event) counters_.count(*event);
        return event.has_value();
      },
      ZmqLoop::Pace::kSeldom);
}

std::optional<InboundMessage> ServerLink::receive() {
  std::optional<InboundMessage> message;
  while (!message && receive_one(message)) {
  }
  return message;
}

bool ServerLink::receive_one(std::optional<InboundMessage>& message) {
  constexpr std::size_t kNames = 1;  // of links
  std::vector<ZmqFrame> frames;
  ZmqArrival arrival;
  const ZmqSocket::Taken taken = socket_->receive(frames, kFramesPerMessage + kNames, kNames, &arrival);
  if (unread_) unread_->handed_out(arrival);
  switch (taken) {
    case ZmqSocket::Taken::kNothing: return false;
    case ZmqSocket::Taken::kTooManyFrames: ++counters_.malformed; return true;
    case ZmqSocket::Taken::kMessage: message = accept(frames); return true;
  }
  return false;
}

std::optional<InboundMessage> ServerLink::accept(std::vector<ZmqFrame>& frames) {
  const auto link = link_of(frames[0].bytes());
  std::size_t size = 0;
  for (std::size_t i = 1; i < frames.size(); ++i) size += frames[i].size();
  if (frames.size() < 2) {
    ++counters_.malformed;
  } else if (!link) {
    ++counters_.named_itself;
  } else if (size > message_bytes_) {
    ++counters_.oversize;
  } else if (frames[1].user_id().empty()) {
    ++counters_.unidentified;
  } else if (loop_ != nullptr && !budget_.take(frames[1].user_id(), size, loop_->loop().now())) {
    ++counters_.flooded;
  } else {
    ++counters_.messages;
    InboundMessage message{*link, std::string(frames[1].user_id()), std::move(frames)};
    message.frames.erase(message.frames.begin());
    return message;
  }
  return std::nullopt;
}

Status ServerLink::send(LinkId link, std::vector<ZmqFrame>& frames) {
  frames.insert(frames.begin(), routing_frame(link));
  Status sent = socket_->send(frames);
  frames.erase(frames.begin());
  if (sent) return sent;
  if (sent.error().code == ErrorCode::kGone) ++counters_.sends_gone;
  if (sent.error().code == ErrorCode::kBusy) ++counters_.sends_full;
  return sent;
}

void ServerLink::linger(Duration patience) {
  // What fails is the hope, not the link.
  (void)socket_->set(ZMQ_LINGER, static_cast<int>(patience.count_milliseconds()));
}

LinkCounters ServerLink::counters() {
  while (const auto event = monitor_->next()) counters_.count(*event);
  if (unread_) counters_.hoarded = unread_->ended();
  return counters_;
}

}  // namespace monarch
