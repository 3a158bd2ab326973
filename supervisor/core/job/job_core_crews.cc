// What runs beside the gangs: spares are warmed, and standby gangs wait at their gates.

#include <algorithm>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/recovery/restart_budget.h"

namespace monarch {

void JobCore::open_crews() {
  for (std::uint32_t m = 0; m <= 2 * spec_.meshes.size(); ++m) {
    Crew crew;
    crew.members.resize(crew_size(spec_, MeshId(m)));
    state_.crews.emplace_back(crew_count(spec_, MeshId(m)), crew);
  }
  state_.preparations.resize(crew_count(spec_, prepare_mesh(spec_)));
  for (const MeshSpec& mesh : spec_.meshes) state_.standbys.emplace_back(mesh.standby_gangs);
}

void JobCore::tend_crews() {
  if (state_.phase == JobPhase::kNew || basis_.starts_nothing()) return;
  preparations_.tend();
  settle_crews();
  standbys_.tend();
  settle_crews();
}

// What follows from what was done with them.
void JobCore::settle_crews() {
  for (const GangOf& left : standbys_.take_left()) give_up_reservation(left.first, left.second);
  for (const HostId id : preparations_.take_stuck()) {
    hosts_.give_up(id);
    settle_hosts();
  }
  for (const HostId id : standbys_.take_stuck()) {
    hosts_.give_up(id);
    settle_hosts();
  }
  // A gang may have waited for these hosts.
  const bool freed = preparations_.take_freed();
  waits_due_ = standbys_.take_freed() || freed || waits_due_;
}

void JobCore::on_crew_changed(const RankChanged& event, const CrewPlace& place) {
  const bool lived = lives(crews_.at(place.key).members[place.index].stage);
  if (lived && event.report.phase == RankPhase::kWedged) hosts_.wedged(event, crews_.name_of(place.key));
  if (place.key.mesh == prepare_mesh(spec_)) {
    preparations_.heard(place, event.report);
  } else {
    standbys_.heard(place, event.host, event.report);
  }
  settle_crews();
}

void JobCore::stop_crews() {
  preparations_.stop_all();
  standbys_.stop_all();
  settle_crews();
}

// Its worker has ended, or is given up.
void JobCore::lose_crews(HostId id) {
  preparations_.lose(id);
  standbys_.lose(id);
  settle_crews();
}

void JobCore::look_at_crews() {
  standbys_.look_at_times();
  settle_crews();
  preparations_.look_at_times();
  settle_crews();
}

// The gang has failed, nothing of it lives, and it is to be started again: on the hosts of one that waits. Its hosts
// become spares.
void JobCore::standby_takes(MeshId m, GangId g) {
  const std::optional<std::uint32_t> s = standbys_.ready_for(m);
  if (!s) return;
  const std::vector<HostId> before = placement_.hosts_of(m, g);
  const bool lost = std::any_of(before.begin(), before.end(), [this](HostId id) { return !basis_.may_serve(id); });
  const ReallocatePolicy& policy = mesh_spec(m).supervision.reallocate;
  if (lost) {
    if (policy.max && still_count(state_.reallocations, policy.window, now_) >= *policy.max) return;
    forget_older(state_.reallocations, policy.window, now_);
    state_.reallocations.push_back(now_);
  }
  const std::vector<HostId> hosts = standbys_.give(m, *s, g);
  for (std::size_t i = 0; i < before.size(); ++i) {
    move_slot(*placement_.slot_on(before[i]), hosts[i], text("standby ", *s));
  }
}

}  // namespace monarch
