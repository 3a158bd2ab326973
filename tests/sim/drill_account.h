#pragma once

// DrillAccount: the checker's own account of what a drill has done: whom it struck, and whom it never named. What it
// struck is no evidence against a host, whichever supervisor hears of it; what befalls gangs that it never named is.
//
// Thread: one simulation's. Lifetime: its checker's.

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/state/events.h"
#include "transport/base/ids.h"

namespace monarch::sim {

class World;

// From this number on notices are a planted bug's.
inline constexpr std::uint32_t kPlanted = 1'000;

class DrillAccount {
 public:
  explicit DrillAccount(World& world) : world_(world) {}

  // By the drill, once its notice was durable.
  void struck(const Incarnation& process) { struck_.insert(process); }
  void struck(HostId host) { struck_hosts_.insert(host); }
  void decided(const CoreEvent& event, const std::vector<Action>& actions, const JobCore& core);

 private:
  struct Known {  // of a host, before the event
    std::vector<Suspicion> suspicions;
    std::vector<Instant> lost_at;
  };
  void learn(const DrillNoted& noted, const JobCore& core);
  void check_failure(const JobEvent& failed, const JobCore& core) const;
  void check_loss(HostId host, const JobCore& core);
  bool is_evidence(RankId rank, HostId host, const JobCore& core) const;
  [[noreturn]] static void violated(const std::string& message);

  World& world_;
  std::set<Incarnation> struck_;
  std::set<HostId> struck_hosts_;              // and not lost since
  std::set<std::pair<MeshId, GangId>> named_;  // by any notice, durable or not
  std::map<HostId, Known> known_;
};

}  // namespace monarch::sim
