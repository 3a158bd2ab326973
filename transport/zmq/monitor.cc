#include "transport/zmq/monitor.h"
#include "transport/base/machine.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <zmq.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/base/text.h"

namespace monarch {

namespace {

// WARNING: not ZMQ_EVENT_ACCEPT_FAILED. Where no descriptor is left, libzmq 4.3.4 fails to accept in a circle; with an
// event each time its I/O thread waits for whoever reads them, and beats wait behind it.
constexpr int kEvents = ZMQ_EVENT_LISTENING | ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                        ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                        ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CONNECT_RETRIED;

// WARNING: libzmq 4.3.4 sends events with a blocking send on the I/O thread. When this many wait to be read, that
// thread waits too: a flood of connections slows itself down and not our memory.
constexpr int kWaitingEvents = 65'536;
constexpr std::size_t kEventFrames = 2;

// A link has a beat or two under way at a time. What is lost of those TCP asks for again after one round trip or so,
// then after twice as long each time: of three losses in a row a host is silent for more than lost_after. Of so thin a
// stream it asks each time after the same time, if it is told to (Linux, Documentation/networking/tcp-thin.rst).
// WARNING: the descriptor is libzmq's, which may have closed it by now, and it may be another one's: this option harms
// none.
void tell_thin(int connection) {
  const int on = 1;
  (void)::setsockopt(connection, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof on);
}

// The first frame of an event (zmq_socket_monitor(3)); the second is an address.
struct EventFrame {
  std::uint16_t number = 0;
  std::uint32_t value = 0;
};

EventFrame event_frame(std::string_view bytes) {
  EventFrame frame;
  MONARCH_ASSERT(bytes.size() >= sizeof frame.number + sizeof frame.value);
  std::memcpy(&frame.number, bytes.data(), sizeof frame.number);
  std::memcpy(&frame.value, bytes.data() + sizeof frame.number, sizeof frame.value);
  return frame;
}

std::optional<MonitorEvent> event_of(std::uint16_t number) {
  switch (number) {
    case ZMQ_EVENT_ACCEPTED: return MonitorEvent::kAccepted;
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED: return MonitorEvent::kHandshaken;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH: return MonitorEvent::kAuthRefused;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL: return MonitorEvent::kProtocolError;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL: return MonitorEvent::kHandshakeDropped;
    case ZMQ_EVENT_DISCONNECTED: return MonitorEvent::kDisconnected;
    case ZMQ_EVENT_CONNECT_RETRIED: return MonitorEvent::kNoConnection;
    default: return std::nullopt;  // a newer libzmq's event that we did not ask for
  }
}

// Random, because libzmq frees the name of a closed monitor at its own time, on its own thread.
std::string fresh_endpoint() { return text("inproc://monitor-", to_hex(random_bytes(8))); }

}  // namespace

Result<std::unique_ptr<ZmqMonitor>> ZmqMonitor::attach(ZmqContext& context, ZmqSocket& watched) {
  const std::string endpoint = fresh_endpoint();
  MONARCH_ASSIGN(auto events, ZmqSocket::create(context, ZMQ_PAIR));
  MONARCH_TRY(events->set(ZMQ_RCVHWM, kWaitingEvents));
  if (zmq_socket_monitor(watched.native(), endpoint.c_str(), kEvents) != 0) {
    return zmq_error("monitoring a socket", errno);
  }
  std::unique_ptr<ZmqMonitor> monitor(new ZmqMonitor(watched, std::move(events)));
  MONARCH_TRY(monitor->events_->connect(endpoint));
  return monitor;
}

ZmqMonitor::~ZmqMonitor() {
  hears_ = nullptr;
  // WARNING: the order matters. An I/O thread that finds its event's reader closed waits for ever (4.3.4), and so would
  // the stop below if the queue was full.
  while (next()) {
  }
  (void)zmq_socket_monitor(watched_.native(), nullptr, 0);  // fails only where there is no monitor to stop
}

std::optional<MonitorEvent> ZmqMonitor::next() {
  std::vector<ZmqFrame> frames;
  while (events_->receive(frames, kEventFrames) == ZmqSocket::Taken::kMessage) {
    const EventFrame frame = event_frame(frames[0].bytes());
    if ((frame.number & (ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED)) != 0) {
      tell_thin(static_cast<int>(frame.value));
      if (hears_) hears_(static_cast<int>(frame.value));
    }
    if (const auto event = event_of(frame.number)) return event;
  }
  return std::nullopt;
}

std::optional<int> ZmqMonitor::listener() {
  std::vector<ZmqFrame> frames;
  if (events_->receive(frames, kEventFrames) != ZmqSocket::Taken::kMessage) return std::nullopt;
  const EventFrame frame = event_frame(frames[0].bytes());
  if (frame.number != ZMQ_EVENT_LISTENING) return std::nullopt;
  return static_cast<int>(frame.value);
}

}  // namespace monarch
