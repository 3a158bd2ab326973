#include "worker/daemon/ready_probes.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/base/socket_address.h"

namespace monarch::daemon {

namespace {

constexpr Duration kFirstWait = Duration::milliseconds(50);
constexpr Duration kLongestWait = Duration::seconds(1);
constexpr Duration kAttempt = Duration::seconds(1);  // a full backlog answers nothing

}  // namespace

ReadyProbes::~ReadyProbes() {
  for (auto& [key, probe] : probes_) clear(probe);
}

void ReadyProbes::begin(const Incarnation& key, std::uint16_t port) {
  const auto [found, is_new] = probes_.try_emplace(key);
  if (!is_new) return;
  found->second.port = port;
  found->second.wait = kFirstWait;
  found->second.timer = loop_.at(loop_.now(), [this, key] { attempt(key); });
}

void ReadyProbes::end(const Incarnation& key) {
  const auto found = probes_.find(key);
  if (found == probes_.end()) return;
  clear(found->second);
  probes_.erase(found);
}

void ReadyProbes::clear(Probe& probe) {
  if (probe.watch != 0) loop_.forget(std::exchange(probe.watch, 0));
  if (probe.timer != 0) loop_.cancel(std::exchange(probe.timer, 0));
  probe.socket.reset();
}

void ReadyProbes::attempt(const Incarnation& key) {
  Probe& probe = probes_.at(key);
  clear(probe);
  const SocketAddress address = socket_address(addresses_[probe.address], probe.port);
  if (address.size == 0) return refused(key);
  probe.socket = UniqueFd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.socket.valid()) return refused(key);
  if (::connect(probe.socket.get(), address.get(), address.size) == 0) {
    return settle(key);
  }
  if (errno != EINPROGRESS) return refused(key);
  const auto watch = loop_.watch(probe.socket.get(), Interest::kWrite, [this, key](Readiness) { settle(key); });
  if (!watch.ok()) return refused(key);
  probe.watch = watch.value();
  probe.timer = loop_.at(loop_.now() + kAttempt, [this, key] { refused(key); });
}

void ReadyProbes::settle(const Incarnation& key) {
  const int fd = probes_.at(key).socket.get();
  int error = 0;
  socklen_t size = sizeof error;
  const bool open = ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  if (!open || connected_to_itself(fd)) return refused(key);
  accepted(key);
}

void ReadyProbes::refused(const Incarnation& key) {
  Probe& probe = probes_.at(key);
  clear(probe);
  if (++probe.address < addresses_.size()) {
    probe.timer = loop_.at(loop_.now(), [this, key] { attempt(key); });
    return;
  }
  probe.address = 0;
  probe.timer = loop_.at(loop_.now() + probe.wait, [this, key] { attempt(key); });
  probe.wait = std::min(probe.wait * 2, kLongestWait);
}

void ReadyProbes::accepted(const Incarnation& key) {
  end(key);
  on_ready_(key);
}

}  // namespace monarch::daemon
