#pragma once

// Network: the links between the workers and the supervisor. Within one connection messages keep their order unless the
// seed duplicates or drops; connections end, silently or not, and what was on its way may still arrive after them. A
// cut loses messages in one direction or both; what TCP would notice after a while is noticed after a while.
//
// Thread: one simulation's. Lifetime: the world's.

#include <array>
#include <cstdint>
#include <variant>
#include <vector>

#include "tests/sim/kernel.h"
#include "transport/messages/claim.h"
#include "transport/messages/rank.h"
#include "transport/messages/stacks.h"
#include "transport/messages/vault.h"
#include "transport/messages/worker.h"

namespace monarch::sim {

class World;

struct Up {
  HostId host;
  std::uint32_t link = 0;
  Term term;  // of the header: what the worker has promised
  std::variant<Hello, Beat, Reserved, KeeperGone> message;
};

struct Down {
  Term term;
  std::variant<Ack, Reserve, Start, Stop, Signal, Tell, Shutdown, TakeStacks, CommitAnswer, ClaimAnswer, VaultTable>
      message;
};

class Network {
 public:
  explicit Network(World& world);

  // A daemon begins or ends: it dials until it is connected, and again after each disconnection.
  void dial(HostId host);
  void hang_up(HostId host);
  bool connected(HostId host) const { return links_[host.value()].up; }
  std::uint32_t link(HostId host) const { return links_[host.value()].id; }
  void supervisor_opens();
  void supervisor_closes();
  bool accepted_by_current(std::uint32_t link) const { return link > first_id_; }

  void send_up(Up message);
  // False: the link is gone.
  bool send_down(HostId host, std::uint32_t link, Down message);

  void cut(HostId host, bool up, bool down);
  void mend(HostId host);
  bool cut_off(HostId host) const { return links_[host.value()].cuts[0] > 0 || links_[host.value()].cuts[1] > 0; }
  void reconnect(HostId host, bool silently);

 private:
  struct Link {
    bool wanted = false;
    bool up = false;
    std::uint32_t id = 0;
    std::uint64_t attempt = 0;
    std::array<int, 2> cuts{};  // up, down
    std::array<Instant, 2> last{};
  };
  void try_dial(HostId host);
  void drop_link(HostId host);
  Duration delay();
  template <class Deliver>
  void carry(Link& link, std::size_t direction, Deliver deliver);

  World& world_;
  std::vector<Link> links_;
  bool open_ = false;
  std::uint32_t next_id_ = 100;
  std::uint32_t first_id_ = 100;  // of the current supervisor; its own are higher
};

}  // namespace monarch::sim
