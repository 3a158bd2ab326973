#include "supervisor/workers/servant_ports.h"

#include <utility>

namespace monarch {

// A worker that was launched anew has a servant of its own.
ServantPorts::Heard ServantPorts::hear(HostId host, std::uint16_t port, Instant now) {
  Servant& servant = servants_[host.value()];
  servant.called = true;
  if (servant.incarnation != incarnation_of(host)) {
    const bool known = servant.port != 0 || servant.gone;
    servant = Servant{.incarnation = incarnation_of(host), .called = true};
    if (port == 0) {
      servant.absent = now;
      return known ? Heard::kChanged : Heard::kSame;
    }
  }
  if (port == 0) {
    if (!servant.absent) servant.absent = now;
    if (servant.gone || now < *servant.absent + kGoneAfter) return Heard::kSame;
    servant.gone = true;
    servant.port = 0;
    return Heard::kChanged;
  }
  servant.absent.reset();
  servant.gone = false;
  const std::uint16_t before = std::exchange(servant.port, port);
  return before == port ? Heard::kSame : before == 0 ? Heard::kFirst : Heard::kChanged;
}

std::uint16_t ServantPorts::port(HostId host) const {
  const Servant& servant = servants_[host.value()];
  return servant.incarnation == incarnation_of(host) ? servant.port : 0;
}

bool ServantPorts::is_gone(HostId host) const {
  const Servant& servant = servants_[host.value()];
  return servant.gone && servant.incarnation == incarnation_of(host);
}

bool ServantPorts::whole(Instant now) {
  if (whole_) return true;
  const auto& hosts = core_.state().hosts;
  whole_ = true;
  for (std::uint32_t i = 0; i < hosts.size(); ++i) {
    const Duration patience = servants_[i].called ? kHeardWithin : kCalledWithin;
    whole_ = whole_ && (port(HostId(i)) != 0 || !is_joined(hosts[i].phase) || now >= *returned_ + patience);
  }
  return whole_;
}

}  // namespace monarch
