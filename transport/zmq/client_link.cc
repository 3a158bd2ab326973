#include "transport/zmq/client_link.h"

#include <zmq.h>

#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kConnectMilliseconds = 4'000;           // the kernel's own limit is two minutes, with pauses of one
constexpr int kNeverMilliseconds = 24 * 3600 * 1000;  // up to twice that; finished links do not get so old

Status prepare_client(ZmqSocket& socket, const ClientOptions& options, const CurveKeyPair& keys) {
  MONARCH_TRY(apply_link_options(socket, options.link, keys));
  MONARCH_TRY(socket.set_bytes(ZMQ_CURVE_SERVERKEY, options.server_key.bytes()));
  // WARNING: libzmq 4.3.4 must not reconnect, and not by ZMQ_RECONNECT_IVL -1 nor with ZMQ_IMMEDIATE. In both cases it
  // takes the pipe away at the disconnection, with what is unread in it, and that in any zmq_msg_recv: between two
  // parts of a message it then aborts (`!_more`, fq.cpp).
  MONARCH_TRY(socket.set(ZMQ_RECONNECT_IVL, kNeverMilliseconds));
  MONARCH_TRY(socket.set(ZMQ_CONNECT_TIMEOUT, kConnectMilliseconds));
  return socket.set(ZMQ_IPV6, is_ipv6(options.address) ? 1 : 0);
}

}  // namespace

ClientLink::ClientLink(std::unique_ptr<ZmqSocket> socket, std::unique_ptr<ZmqMonitor> monitor,
                       const LinkOptions& options)
    : socket_(std::move(socket)),
      monitor_(std::move(monitor)),
      message_bytes_(options.message_bytes),
      unread_bytes_(options.unread_bytes) {}

void ClientLink::watch_unread(UnreadWatch& watch) {
  if (unread_bytes_ == 0) return;
  unread_ = std::make_unique<UnreadPort>(watch, unread_bytes_ + message_bytes_);
  monitor_->when_connected([this](int descriptor) { unread_->opened(descriptor); });
}

Result<std::unique_ptr<ClientLink>> ClientLink::connect(ZmqContext& context, const ClientOptions& options,
                                                        const CurveKeyPair& keys) {
  MONARCH_ASSERT(options.link.io_thread < context.io_threads());
  MONARCH_ASSIGN(const std::string endpoint, tcp_endpoint(options.address, text(options.port)));
  MONARCH_ASSIGN(auto socket, ZmqSocket::create(context, ZMQ_DEALER));
  MONARCH_TRY(prepare_client(*socket, options, keys));
  MONARCH_ASSIGN(auto monitor, ZmqMonitor::attach(context, *socket));
  MONARCH_TRY(socket->connect(endpoint));
  return std::unique_ptr<ClientLink>(new ClientLink(std::move(socket), std::move(monitor), options.link));
}

// Without a connection libzmq would queue it.
Status ClientLink::send(std::vector<ZmqFrame>& frames) {
  if (!connected_) return Error{ErrorCode::kGone, "sending: not connected"};
  return socket_->send(frames);
}

std::optional<std::vector<ZmqFrame>> ClientLink::receive() {
  std::vector<ZmqFrame> frames;
  for (;;) {
    ZmqArrival arrival;
    const auto taken = socket_->receive(frames, kFramesPerMessage, 0, &arrival);
    if (unread_) unread_->handed_out(arrival);
    if (taken == ZmqSocket::Taken::kNothing) return std::nullopt;
    std::size_t size = 0;
    for (const ZmqFrame& frame : frames) size += frame.size();
    if (taken == ZmqSocket::Taken::kMessage && size <= message_bytes_) return frames;
    ++refused_messages_;
  }
}

void ClientLink::linger(Duration patience) {
  // What fails is the hope, not the link.
  (void)socket_->set(ZMQ_LINGER, static_cast<int>(patience.count_milliseconds()));
}

std::optional<ClientEvent> ClientLink::next_event() {
  const auto finish = [this](ClientEvent event) {
    finished_ = true;
    connected_ = false;
    return event;
  };
  while (const auto event = monitor_->next()) {
    if (finished_) continue;
    switch (*event) {
      case MonitorEvent::kHandshaken: connected_ = true; return ClientEvent::kConnected;
      case MonitorEvent::kAuthRefused: return finish(ClientEvent::kRefused);
      case MonitorEvent::kDisconnected:
        return finish(connected_ ? ClientEvent::kDisconnected : ClientEvent::kHandshakeFailed);
      case MonitorEvent::kProtocolError:
      case MonitorEvent::kHandshakeDropped: return finish(ClientEvent::kHandshakeFailed);
      case MonitorEvent::kNoConnection: return finish(ClientEvent::kUnreachable);
      case MonitorEvent::kAccepted: continue;  // of servers only
    }
  }
  return std::nullopt;
}

}  // namespace monarch
