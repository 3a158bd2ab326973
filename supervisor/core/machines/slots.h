#pragma once

// Slots: which host each is on. Until a gang of it has started, a slot whose host is out goes to a spare, or to a cold
// host of the pool, and no budget is spent; with none left the job fails, as soon as it is known of every other host
// whether it starts, so that all are named. Of gangs that have started, another host takes the slot once nothing lives
// there, within budgets; a gang without a host is parked where the spec allows it, and returns when each of its slots
// has a connected host again. Sizes and numbers never change. And hosts that serve no slot: spares are kept up, others
// end where somebody wants that.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include <string>
#include <vector>

#include "supervisor/core/accounts/requests.h"
#include "supervisor/core/gangs/gangs.h"

namespace monarch {

class Slots {
 public:
  // `mine`: the host of each; `moves`: that count against supervision.reallocate.
  Slots(const CoreBasis& basis, std::vector<HostId>& mine, std::vector<Instant>& moves, Placement& placement,
        Gangs& gangs, CoreHosts& hosts, LastWords& last_words, Requests& requests, Ending& end)
      : basis_(basis),
        mine_(mine),
        moves_(moves),
        placement_(placement),
        gangs_(gangs),
        hosts_(hosts),
        last_words_(last_words),
        requests_(requests),
        end_(end) {
    mine_ = placement.slots();
  }

  // Every slot on a host that serves, and as many spares as the spec asks for, while the pool has hosts.
  void fill();
  // May this gang, of which nothing lives, have other hosts? It is counted where one of its own is out.
  bool may_give(MeshId m, GangId g);
  void give(MeshId m, GangId g, const std::vector<HostId>& to, const std::string& rule);
  void forgive() { moves_.clear(); }
  // Of the state of a snapshot.
  void restored() { placement_.put(mine_); }

  template <class Visit>
  void each_time(Visit& visit) const {
    visit_all(moves_, TimeKind::kPast, visit);
  }

 private:
  void move(std::uint32_t slot, HostId to, const std::string& rule = {});
  void give_up_reservations(std::uint32_t slot);
  void check_inventory(std::uint32_t slot);
  void check();
  void refill(std::uint32_t slot);
  void evict(std::uint32_t slot);
  bool find_hosts(MeshId mesh, GangId g);
  void regrow();
  void tend_idle();
  void give_back_idle();
  void end_drained();
  void keep_spares();

  const CoreBasis& basis_;
  std::vector<HostId>& mine_;
  std::vector<Instant>& moves_;
  Placement& placement_;
  Gangs& gangs_;
  CoreHosts& hosts_;
  LastWords& last_words_;
  Requests& requests_;
  Ending& end_;
};

}  // namespace monarch
