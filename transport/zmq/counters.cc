#include "transport/zmq/counters.h"

namespace monarch {

std::uint64_t LinkCounters::junk() const {
  const std::uint64_t explained = handshaken + auth_refused + protocol_errors + silent;
  // One connection may raise two events of failure.
  return accepted > explained ? accepted - explained : 0;
}

void LinkCounters::count(MonitorEvent event) {
  switch (event) {
    case MonitorEvent::kAccepted: ++accepted; return;
    case MonitorEvent::kAcceptFailed: ++accept_failed; return;
    case MonitorEvent::kHandshaken: ++handshaken; return;
    case MonitorEvent::kAuthRefused: ++auth_refused; return;
    case MonitorEvent::kProtocolError: ++protocol_errors; return;
    case MonitorEvent::kHandshakeDropped: ++silent; return;
    case MonitorEvent::kDisconnected: ++disconnected; return;
  }
}

}  // namespace monarch
