// What a report is to the job: of which generation, and whether its host had it.

#include <algorithm>

#include "supervisor/core/job/job_core.h"

namespace monarch {

namespace {

// Of the rank's host, counted from the first of its gang.
std::size_t index_in_gang(const Placement& placement, GangId gang, RankId id) {
  const Rank first(placement.range_of(id.mesh, gang).first);
  return placement.host_index(id) - placement.host_index({id.mesh, first});
}

}  // namespace

// Its slot may have gone elsewhere since it ended.
HostId JobCore::place_of(RankId id) const {
  const RankStage stage = rank(id).stage;
  const GangId g = mesh_spec(id.mesh).gang_of(id.rank);
  const std::vector<PastPlace>& places = gang(id.mesh, g).places;
  if ((stage != RankStage::kEnded && stage != RankStage::kLost) || places.empty()) return placement_.host_of(id);
  return places.back().hosts[index_in_gang(placement_, g, id)];
}

Judgement JobCore::judge(HostId where, const RankReport& report) const {
  const RankId id = report.process.rank;
  if (where.value() >= state_.hosts.size()) return {};
  if (has_rank(id)) return judge_rank(where, report);
  if (prepared_host(spec_, id) == where) return judge_preparation(where, report.process.generation);
  if (const auto place = standby_place(spec_, id)) return judge_standby(where, *place, report.process.generation);
  return {};
}

Judgement JobCore::judge_rank(HostId where, const RankReport& report) const {
  const RankId id = report.process.rank;
  const Generation generation = report.process.generation;
  const GangId g = mesh_spec(id.mesh).gang_of(id.rank);
  const GangState& state = gang(id.mesh, g);
  // Who has the slot by now did not have it when that generation began: its next one waits until this one can act no
  // longer (I3).
  const bool ran = ran_on(state.places, generation, index_in_gang(placement_, g, id), where);
  const HostState& host = state_.hosts[where.value()];
  if (ran && generation == state.generation && place_of(id) == where) {
    // A host that is being destroyed gets no more time, even if it is heard of once more; nor does one that kills what
    // runs there.
    const bool serves = host.phase == HostPhase::kJoined && !host.failing;
    return {.of = ReportOf::kOfNow, .granted = serves && lives(rank(id).stage) && !rank(id).reaped};
  }
  const bool owed = host.phase == HostPhase::kJoined && report.phase == RankPhase::kEnded &&
                    std::find(host.owed.begin(), host.owed.end(), report.process) != host.owed.end();
  if (owed) return {.of = ReportOf::kOwed};
  if (ran && generation < state.generation) return {.of = ReportOf::kSuperseded};
  return {};
}

Judgement JobCore::judge_preparation(HostId where, Generation generation) const {
  const HostState& host = state_.hosts[where.value()];
  if (generation < host.preparation.generation) return {.of = ReportOf::kSuperseded};
  if (generation != host.preparation.generation) return {};
  return {.of = ReportOf::kOfNow, .granted = host.phase == HostPhase::kJoined && lives(host.preparation.phase)};
}

Judgement JobCore::judge_standby(HostId where, const StandbyPlace& place, Generation generation) const {
  const StandbyState& standby = state_.meshes[place.mesh.value()].standby[place.standby];
  const std::size_t index = place.index / mesh_spec(place.mesh).per_host();
  if (generation < standby.generation && ran_on(standby.places, generation, index, where)) {
    return {.of = ReportOf::kSuperseded};
  }
  if (generation != standby.generation || standby.hosts.empty() || standby.hosts[index] != where) return {};
  const bool stands = standby.phase != StandbyPhase::kWaiting && lives(standby.ranks[place.index].stage);
  return {.of = ReportOf::kOfNow, .granted = stands && state_.hosts[where.value()].phase == HostPhase::kJoined};
}

}  // namespace monarch
