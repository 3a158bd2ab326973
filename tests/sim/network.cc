#include "tests/sim/network.h"

#include <algorithm>
#include <utility>

#include "tests/sim/world.h"

namespace monarch::sim {

namespace {

constexpr std::size_t kUp = 0;
constexpr std::size_t kDown = 1;
constexpr Duration kNoticesCut = Duration::seconds(4);  // the transport's own heartbeat

}  // namespace

Network::Network(World& world) : world_(world), links_(world.hosts.size()) {}

void Network::dial(HostId host) {
  links_[host.value()].wanted = true;
  try_dial(host);
}

void Network::hang_up(HostId host) {
  Link& link = links_[host.value()];
  link.wanted = false;
  link.up = false;
  ++link.attempt;
}

void Network::supervisor_opens() {
  open_ = true;
  first_id_ = next_id_;
}

void Network::supervisor_closes() {
  open_ = false;
  for (std::uint32_t i = 0; i < links_.size(); ++i) {
    if (links_[i].up) drop_link(HostId(i));
  }
}

void Network::try_dial(HostId host) {
  const std::uint64_t attempt = ++links_[host.value()].attempt;
  const Duration wait = world_.random.between(Duration::milliseconds(1), Duration::milliseconds(100));
  world_.scheduler.after(wait, [this, host, attempt] {
    Link& link = links_[host.value()];
    if (!link.wanted || link.up || link.attempt != attempt) return;
    Daemon* daemon = world_.host(host).daemon();
    const bool path =
        open_ && !cut_off(host) && world_.may_connect(host) && daemon != nullptr && !world_.host(host).frozen();
    if (!path) return try_dial(host);
    link.up = true;
    link.id = ++next_id_;
    link.last = {};
    world_.note("connected", host.value(), link.id);
    daemon->connected();
  });
}

void Network::drop_link(HostId host) {
  Link& link = links_[host.value()];
  link.up = false;
  world_.note("disconnected", host.value(), link.id);
  if (Daemon* daemon = world_.host(host).daemon()) daemon->disconnected();
  if (link.wanted) try_dial(host);
}

Duration Network::delay() {
  const Faults& faults = world_.faults();
  if (world_.random.permille(faults.slow)) return world_.random.between(Duration::milliseconds(1), faults.slow_by);
  return world_.random.skewed(Duration::microseconds(50), Duration::milliseconds(5));
}

template <class Deliver>
void Network::carry(Link& link, std::size_t direction, Deliver deliver) {
  if (link.cuts[direction] > 0) return;
  const Faults& faults = world_.faults();
  if (world_.random.permille(faults.drop)) return;
  Instant arrives = world_.scheduler.now() + delay();
  arrives = std::max(arrives, link.last[direction] + Duration::nanoseconds(1));
  link.last[direction] = arrives;
  if (world_.random.permille(faults.duplicate)) {
    world_.scheduler.at(arrives + world_.random.skewed(Duration::microseconds(50), Duration::seconds(10)), deliver);
  }
  world_.scheduler.at(arrives, std::move(deliver));
}

void Network::send_up(Up message) {
  Link& link = links_[message.host.value()];
  if (!link.up) return;
  message.link = link.id;
  carry(link, kUp, [this, message = std::move(message)] { world_.deliver_up(message); });
}

bool Network::send_down(HostId host, std::uint32_t id, Down message) {
  Link& link = links_[host.value()];
  if (!link.up || link.id != id) return false;
  // To this daemon's socket: a later daemon never sees it.
  Daemon* daemon = world_.host(host).daemon();
  if (daemon == nullptr) return true;
  carry(link, kDown, [life = daemon->beat_life(), daemon, message = std::move(message)] {
    if (life->listens()) return daemon->deliver(message);
    life->message([daemon, message] { daemon->deliver(message); });
  });
  return true;
}

void Network::cut(HostId host, bool up, bool down) {
  Link& link = links_[host.value()];
  if (up) ++link.cuts[kUp];
  if (down) ++link.cuts[kDown];
  const std::uint32_t id = link.id;
  world_.scheduler.after(kNoticesCut, [this, host, id] {
    const Link& now = links_[host.value()];
    if (now.up && now.id == id && cut_off(host)) drop_link(host);
  });
}

void Network::mend(HostId host) { links_[host.value()].cuts = {}; }

void Network::reconnect(HostId host, bool silently) {
  Link& link = links_[host.value()];
  if (!link.up) return;
  if (!silently) return drop_link(host);
  // The transport mends it under its user: another connection, what was on its way is lost or late, and nobody says so.
  link.id = ++next_id_;
  link.last = {};
}

}  // namespace monarch::sim
