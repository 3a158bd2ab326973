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
  const RankStage stage = member(id).stage;
  const GangId g = mesh_spec(id.mesh).gang_of(id.rank);
  const std::vector<PastPlace>& places = crew(id.mesh, g).places;
  if ((stage != RankStage::kEnded && stage != RankStage::kLost) || places.empty()) return placement_.host_of(id);
  return places.back().hosts[index_in_gang(placement_, g, id)];
}

std::optional<HostId> JobCore::where_is(RankId id) const {
  if (has_rank(id)) return place_of(id);
  const auto place = crew_of(spec_, id);
  return place ? crews_.where_is(*place) : std::nullopt;
}

Judgement JobCore::judge(HostId where, const RankReport& report) const {
  const RankId id = report.process.rank;
  if (where.value() >= state_.hosts.size()) return {};
  if (has_rank(id)) return judge_rank(where, report);
  if (const auto place = crew_of(spec_, id)) return crews_.judge(*place, where, report.process.generation);
  return {};
}

Judgement JobCore::judge_rank(HostId where, const RankReport& report) const {
  const RankId id = report.process.rank;
  const Generation generation = report.process.generation;
  const GangId g = mesh_spec(id.mesh).gang_of(id.rank);
  const Crew& crew = this->crew(id.mesh, g);
  // Who has the slot by now did not have it when that generation began: its next one waits until this one can act no
  // longer (I3).
  const bool ran = ran_on(crew.places, generation, index_in_gang(placement_, g, id), where);
  const HostState& host = state_.hosts[where.value()];
  if (ran && generation == crew.generation && place_of(id) == where) {
    // A host that is being destroyed gets no more time, even if it is heard of once more; nor does one that kills what
    // runs there.
    const bool serves = host.phase == HostPhase::kJoined && !host.failing;
    return {.of = ReportOf::kOfNow, .granted = serves && lives(member(id).stage) && !rank(id).reaped};
  }
  const bool owed = host.phase == HostPhase::kJoined && report.phase == RankPhase::kEnded &&
                    std::find(host.owed.begin(), host.owed.end(), report.process) != host.owed.end();
  if (owed) return {.of = ReportOf::kOwed};
  if (ran && generation < crew.generation) return {.of = ReportOf::kSuperseded};
  return {};
}

}  // namespace monarch
