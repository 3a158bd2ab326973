#pragma once

// Standbys: gangs of a mesh that are started on spares and wait at their gates without a place. Where a gang is to be
// started again, one that waits takes its slots, and the START of the next generation names its processes: nothing of
// them acts as the gang before that START is obeyed and leased (I1, I3). A standby decides nothing of the job.
//
// The crew of a mesh's standby N is number N of the mesh behind the spec's that is for it.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/crew/crews.h"
#include "supervisor/core/facts/hosts.h"

namespace monarch {

class Standbys final : public CrewKind {
 public:
  // `mine`: of each mesh of the spec.
  Standbys(const CoreBasis& basis, std::vector<std::vector<StandbyState>>& mine, Crews& crews);

  // standbys_orders.cc
  std::optional<Reserve> reserve_of(const CrewKey& key, std::size_t host) const override;
  Start start_of(const CrewKey& key, std::size_t host) const override;
  bool stands_by() const override { return true; }
  std::string name_of(const CrewKey& key) const override;

  // One that is at its gate, on hosts that serve.
  std::optional<std::uint32_t> ready_for(MeshId mesh) const;

  // Those whose hosts are needed are ended, and those that have none are begun where hosts are free.
  void tend();
  void on(const PortsReserved& event);
  void heard(const CrewPlace& place, HostId host, const RankReport& report);
  void lose(HostId host);
  void look_at_times();
  void stop_all();
  // It takes this gang's place; its hosts.
  std::vector<HostId> give(MeshId mesh, std::uint32_t standby, GangId gang);
  // Every rank of the gang has passed its gate, or has ended.
  void is_placed(const PlacedGang& gang);

  template <class Visit>
  void each_time(Visit& visit) const {
    each([&](MeshId m, std::uint32_t s) {
      visit(mine_[m.value()][s].not_before, is_about(crew_of(m, s)) ? TimeKind::kPast : TimeKind::kWait);
    });
  }

  // Hosts that somebody may have waited for are free; hosts that did not end it in time; gangs that have no hosts any
  // longer, since who was to give them these is being ended.
  bool take_freed() { return std::exchange(freed_, false); }
  std::vector<HostId> take_stuck() { return std::exchange(stuck_, {}); }
  std::vector<GangOf> take_left() { return std::exchange(left_, {}); }

 private:
  CrewKey key_of(MeshId mesh, std::uint32_t s) const { return {standby_mesh(basis_.spec, mesh), GangId(s)}; }
  const Crew& crew_of(MeshId mesh, std::uint32_t s) const { return crews_.at(key_of(mesh, s)); }
  StandbyState& mine(MeshId mesh, std::uint32_t s) { return mine_[mesh.value()][s]; }
  bool may_stand_by(MeshId mesh, HostId host) const;
  std::vector<HostId> hosts_for(MeshId mesh) const;
  void begin(MeshId mesh, std::uint32_t s, std::vector<HostId> hosts);
  void failed(MeshId mesh, std::uint32_t s, const std::string& why);
  void stop(MeshId mesh, std::uint32_t s);
  void look(MeshId mesh, std::uint32_t s);
  void say(MeshId mesh, std::uint32_t s, EventKind kind, Severity severity, const std::string& what) const;
  template <class Visit>
  void each(Visit visit) const {
    for (std::uint32_t m = 0; m < mine_.size(); ++m) {
      for (std::uint32_t s = 0; s < mine_[m].size(); ++s) visit(MeshId(m), s);
    }
  }

  const CoreBasis& basis_;
  std::vector<std::vector<StandbyState>>& mine_;
  Crews& crews_;
  bool freed_ = false;
  std::vector<HostId> stuck_;
  std::vector<GangOf> left_;
};

}  // namespace monarch
