#pragma once

// Gangs: each from its reservation to its last rank's end, what its failure means, and its next generation. A gang that
// fails is started again as its next generation, on the same hosts or on others, within budgets (recovery.h); where
// these are spent, or nothing can be mended, it fails the job. Other gangs go on. Nobody else writes a gang's state, or
// a rank's.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/accounts/drills.h"
#include "supervisor/core/accounts/ending.h"
#include "supervisor/core/accounts/last_words.h"
#include "supervisor/core/crew/crews.h"
#include "supervisor/core/crew/times.h"
#include "supervisor/core/hosts/core_hosts.h"
#include "supervisor/core/recovery/recovery.h"
#include "supervisor/core/state/events.h"
#include "supervisor/core/state/gang_life.h"

namespace monarch {

class Gangs {
 public:
  Gangs(const CoreBasis& basis, std::vector<MeshState>& mine, Crews& crews, CoreHosts& hosts, Drills& drills,
        LastWords& last_words, Ending& end)
      : basis_(basis), mine_(mine), crews_(crews), hosts_(hosts), drills_(drills), last_words_(last_words), end_(end) {
    for (const MeshSpec& mesh : basis.spec.meshes) {
      mine_.push_back({.ranks = std::vector<RankState>(mesh.size()),
                       .gangs = std::vector<GangState>(mesh.gangs(), first_gang(mesh.idle))});
    }
  }

  // gangs.cc
  void on(const RankChanged& event);
  // The host is lost: what runs there has to end; why is decided within a time; nothing more will be heard of it.
  void lose_host(HostId id, std::optional<Duration> silence);
  void decide_causes_within(HostId id, Duration patience);
  void host_gone(HostId id);
  // It fails because of this host. `alive_at`: when a sign of it came last; never(): nobody knows.
  void fail_by(MeshId mesh, GangId g, HostId host, Instant alive_at = Instant::never());
  void look_at_times(MeshId mesh, GangId g);
  void returned();

  // gangs_recovery.cc
  void on(const GangProgressed& event);
  void on(const GangPaused& event);
  void on(const StepsHeard& event);
  // What failed is forgiven, and what waits is tried now.
  void retry(MeshId mesh, GangId g);
  // Those that came to wait within the step are told, now that it is known what becomes of their slots; and where the
  // time of all goes from now on.
  void end_step();

  // gangs_orders.cc
  void reserve(MeshId mesh, GangId g);
  void start(MeshId mesh, GangId g);
  // What is held for a gang that waits is held for a generation that never starts.
  void give_up_reservation(MeshId mesh, GangId g);
  // Those of a sidecar that lacks something there, and decide nothing; false: none is like that.
  bool give_up_sidecars(MeshId mesh, HostId where, const std::string& what);
  // No host is left for a gang that waits.
  void give_up(MeshId mesh, GangId g, HostId where, const Recovery& why);
  void restart(MeshId mesh, GangId g, const std::string& who);
  // It was parked, and has its hosts.
  void come_back(MeshId mesh, GangId g);
  // An idle slot has been claimed, or nobody has it any more.
  void slot_changed(MeshId mesh, GangId g);
  // Of the highest stage that has not ended: the others wait until it has. A kill waits for nothing.
  void stop_highest();
  // The next stage, once the one above it has ended.
  bool is_stage_due() const;

  // gangs_notes.cc
  void on(const RankHung& event);
  void on(const HoldAsked& event);
  void on(const CheckpointCommitted& event);
  void on(const GangsInherited& event);
  void take_over(const JobBegun& event);

  std::vector<PlacedGang> take_placed() { return std::exchange(placed_, {}); }
  // Gangs whose next generation waits.
  std::vector<GangOf> take_waiting() { return std::exchange(waiting_, {}); }

  template <class Visit>
  void each_time(Visit& visit) const;

 private:
  GangState& gang(MeshId mesh, GangId g);
  RankState& rank(RankId id);
  void fail(MeshId mesh, GangId g, Instant alive_at = Instant::never());
  void look(MeshId mesh, GangId g);
  void decide_cause(MeshId mesh, GangId g);
  Recovery recovery_of(MeshId mesh, GangId g, const Verdict& verdict, std::optional<std::size_t> first);
  void note_failure(MeshId mesh, GangId g, Verdict verdict, const Recovery& next);
  void leave_generation(MeshId mesh, GangId g);
  void progress_is_due(MeshId mesh, GangId g);
  void start_as_asked(MeshId mesh, GangId g);
  void stop(MeshId mesh, GangId g, std::int32_t signal, Duration grace);

  const CoreBasis& basis_;
  std::vector<MeshState>& mine_;
  Crews& crews_;
  CoreHosts& hosts_;
  Drills& drills_;
  LastWords& last_words_;
  Ending& end_;
  std::vector<PlacedGang> placed_;
  std::vector<GangOf> waiting_;
  std::vector<GangOf> to_tell_;
};

template <class Visit>
void Gangs::each_time(Visit& visit) const {
  for (MeshState& mesh : mine_) {
    for (RankState& rank : mesh.ranks) visit(rank.ended_at, TimeKind::kPast);
    for (GangState& gang : mesh.gangs) {
      visit(gang.cause_deadline, TimeKind::kPatience);
      visit(gang.progress_deadline, TimeKind::kPatience);
      visit(gang.not_before, is_waiting(gang.phase) ? TimeKind::kWait : TimeKind::kPast);
      visit(gang.failed_at, TimeKind::kPast);
      visit(gang.started_at, TimeKind::kPast);
      visit(gang.time.since, TimeKind::kPast);
      for (EndedRank& end : gang.ends) visit(end.ended_at, TimeKind::kPast);
      visit_all(gang.failures, TimeKind::kPast, visit);
    }
  }
}

}  // namespace monarch
