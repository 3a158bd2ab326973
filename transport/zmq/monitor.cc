#include "transport/zmq/monitor.h"

#include <sys/random.h>
#include <zmq.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kEvents = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_ACCEPT_FAILED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                        ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                        ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_DISCONNECTED;

// WARNING: libzmq 4.3.4 sends events with a blocking send on the I/O thread. When this many wait to be read, that
// thread waits too: a flood of connections slows itself down and not our memory.
constexpr int kWaitingEvents = 65'536;
constexpr std::size_t kEventFrames = 2;

std::optional<MonitorEvent> event_of(std::uint16_t number) {
  switch (number) {
    case ZMQ_EVENT_ACCEPTED: return MonitorEvent::kAccepted;
    case ZMQ_EVENT_ACCEPT_FAILED: return MonitorEvent::kAcceptFailed;
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED: return MonitorEvent::kHandshaken;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH: return MonitorEvent::kAuthRefused;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL: return MonitorEvent::kProtocolError;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL: return MonitorEvent::kHandshakeDropped;
    case ZMQ_EVENT_DISCONNECTED: return MonitorEvent::kDisconnected;
    default: return std::nullopt;  // a newer libzmq's event that we did not ask for
  }
}

// Random, because libzmq frees the name of a closed monitor at its own time, on its own thread.
Result<std::string> fresh_endpoint() {
  std::array<char, 8> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return errno_error("getrandom", errno);
  }
  return text("inproc://monitor-", to_hex({random.data(), random.size()}));
}

}  // namespace

Result<std::unique_ptr<ZmqMonitor>> ZmqMonitor::attach(ZmqContext& context, ZmqSocket& watched) {
  MONARCH_ASSIGN(const std::string endpoint, fresh_endpoint());
  MONARCH_ASSIGN(auto events, ZmqSocket::create(context, ZMQ_PAIR));
  MONARCH_TRY(events->set(ZMQ_RCVHWM, kWaitingEvents));
  if (zmq_socket_monitor(watched.native(), endpoint.c_str(), kEvents) != 0) {
    return Error{ErrorCode::kInternal, text("monitoring a socket: ", zmq_strerror(errno))};
  }
  std::unique_ptr<ZmqMonitor> monitor(new ZmqMonitor(watched, std::move(events)));
  MONARCH_TRY(monitor->events_->connect(endpoint));
  return monitor;
}

ZmqMonitor::~ZmqMonitor() {
  // WARNING: the order matters. An I/O thread that finds its event's reader closed waits for ever (4.3.4), and so would
  // the stop below if the queue was full.
  while (next()) {
  }
  (void)zmq_socket_monitor(watched_.native(), nullptr, 0);  // fails only where there is no monitor to stop
}

std::optional<MonitorEvent> ZmqMonitor::next() {
  std::vector<ZmqFrame> frames;
  while (events_->receive(frames, kEventFrames) == ZmqSocket::Taken::kMessage) {
    // The first frame is the event's number and value, 16 and 32 bits, the second an address (zmq_socket_monitor(3)).
    std::uint16_t number = 0;
    MONARCH_ASSERT(frames[0].size() >= sizeof number);
    std::memcpy(&number, frames[0].bytes().data(), sizeof number);
    if (const auto event = event_of(number)) return event;
  }
  return std::nullopt;
}

}  // namespace monarch
