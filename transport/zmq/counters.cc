#include "transport/zmq/counters.h"

#include <bit>

#include "transport/base/text.h"

namespace monarch {

std::uint64_t LinkCounters::junk() const {
  const std::uint64_t explained = handshaken + auth_refused + protocol_errors + silent;
  // One connection may raise two events of failure.
  return accepted > explained ? accepted - explained : 0;
}

void LinkCounters::count(MonitorEvent event) {
  switch (event) {
    case MonitorEvent::kAccepted: ++accepted; return;
    case MonitorEvent::kHandshaken: ++handshaken; return;
    case MonitorEvent::kAuthRefused: ++auth_refused; return;
    case MonitorEvent::kProtocolError: ++protocol_errors; return;
    case MonitorEvent::kHandshakeDropped: ++silent; return;
    case MonitorEvent::kDisconnected: ++disconnected; return;
    case MonitorEvent::kNoConnection: return;  // of clients only
  }
}

std::vector<std::pair<std::string, std::uint64_t>> LinkCounters::named(std::string_view port) const {
  std::vector<std::pair<std::string, std::uint64_t>> all;
  const auto add = [&](std::string_view name, std::uint64_t count) { all.emplace_back(text(port, '.', name), count); };
  add("accepted", accepted);
  add("handshaken", handshaken);
  add("auth_refused", auth_refused);
  add("protocol_errors", protocol_errors);
  add("silent", silent);
  add("junk", junk());
  add("disconnected", disconnected);
  add("messages", messages);
  add("oversize", oversize);
  add("malformed", malformed);
  add("flooded", flooded);
  add("hoarded", hoarded);
  add("unidentified", unidentified);
  add("named_itself", named_itself);
  add("sends_gone", sends_gone);
  add("sends_full", sends_full);
  return all;
}

void PublishedCounters::put(const LinkCounters& counters) {
  const auto numbers = std::bit_cast<std::array<std::uint64_t, kNumbers>>(counters);
  for (std::size_t i = 0; i < kNumbers; ++i) numbers_[i].store(numbers[i], std::memory_order_relaxed);
}

LinkCounters PublishedCounters::get() const {
  std::array<std::uint64_t, kNumbers> numbers{};
  for (std::size_t i = 0; i < kNumbers; ++i) numbers[i] = numbers_[i].load(std::memory_order_relaxed);
  return std::bit_cast<LinkCounters>(numbers);
}

}  // namespace monarch
