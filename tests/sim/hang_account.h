#pragma once

// HangAccount: the checker's own account of ranks that do not get on: whom an operator holds or has stopped, whom a
// debugger holds and who could know it, and whose stacks were taken. No detector ends a gang of which somebody holds a
// rank, none before it has looked at the stacks, and none sleeps.
//
// Thread: one simulation's. Lifetime: its checker's.

#include <map>
#include <set>
#include <vector>

#include "supervisor/core/job/job_core.h"
#include "tests/sim/ranks.h"

namespace monarch::sim {

class World;

std::vector<RankId> every_rank(const JobSpec& spec);

class HangAccount {
 public:
  explicit HangAccount(World& world) : world_(world) {}

  // An operator was answered; one that lets go has merely asked.
  void asked_to_hold(const std::vector<RankId>& ranks);
  // It is durable; a release that came before took it back.
  void held(const std::vector<RankId>& ranks);
  void released(const std::vector<RankId>& ranks);
  // Asked for; until it is durable, a supervisor's death makes it undone.
  void stopped(const std::vector<RankId>& ranks, const JobCore& core);
  void stop_is_durable(const std::vector<RankId>& ranks);
  void continued(const std::vector<RankId>& ranks);
  // A beat of this host was sent then and counts now.
  void counts(HostId host, Instant sent_at);
  void dumped(RankId rank, Generation generation);
  void judged(const RankHung& verdict, const JobCore& core);
  // Once a second; `heard`: of whom it was heard lately.
  void look(const JobCore& core, const std::set<HostId>& heard);
  void supervisor_died();

 private:
  RankProcess* process_of(HostId host, const Incarnation& key) const;
  bool left_alone(MeshId mesh, GangId gang, Generation generation) const;

  World& world_;
  std::set<RankId> held_;          // as places
  std::set<RankId> to_be_held_;    // asked for, not durable yet
  std::set<Incarnation> stopped_;  // as processes
  std::set<Incarnation> asked_;    // of these, what is not durable
  std::set<Incarnation> traced_;   // and the supervisor can know it
  std::set<Incarnation> dumped_;
  std::map<Incarnation, Duration> unseen_;  // how long somebody should have noticed
};

}  // namespace monarch::sim
