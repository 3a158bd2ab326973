#pragma once

// Preparations: spares are warmed. `spares.prepare` runs once on each, as soon as it is connected, and decides nothing
// of the job. A host that a gang needs meanwhile is given to it once the program has ended there.
//
// The crew of a host is the one with its number, of one member.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/crew/crews.h"

namespace monarch {

class Preparations final : public CrewKind {
 public:
  Preparations(const CoreBasis& basis, std::vector<Preparation>& mine, Crews& crews);

  Start start_of(const CrewKey& key, std::size_t host) const override;
  std::string name_of(const CrewKey&) const override { return std::string(kPrepareMesh); }

  // Who has just become a spare is warmed; what runs on a host that is none any longer is ended.
  void tend();
  void heard(const CrewPlace& place, const RankReport& report);
  void look_at_times();
  // Its host has ended, or is given up.
  void lose(HostId host);
  void stop_all();

  template <class Visit>
  void each_time(Visit& visit) const {
    for (Preparation& one : mine_) visit(one.began, TimeKind::kPast);
  }

  // A host that somebody may have waited for is free; hosts that did not end it in time.
  bool take_freed() { return std::exchange(freed_, false); }
  std::vector<HostId> take_stuck() { return std::exchange(stuck_, {}); }

 private:
  CrewKey key_of(HostId host) const { return {prepare_mesh(basis_.spec), GangId(host.value())}; }
  void begin(HostId host);
  void look_at_time(HostId host);
  void stop(HostId host, const std::string& why);
  void ended(HostId host, const RankEnd& end);

  const CoreBasis& basis_;
  std::vector<Preparation>& mine_;
  Crews& crews_;
  bool freed_ = false;
  std::vector<HostId> stuck_;
};

}  // namespace monarch
