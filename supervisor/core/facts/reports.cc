#include "supervisor/core/facts/reports.h"

#include <algorithm>

namespace monarch {

namespace {

// Of the rank's host, counted from the first of its gang.
std::size_t index_in_gang(const Placement& placement, GangId gang, RankId id) {
  const Rank first(placement.range_of(id.mesh, gang).first);
  return placement.host_index(id) - placement.host_index({id.mesh, first});
}

// Of a rank of the spec.
Judgement judge_rank(const CoreFacts& job, HostId where, const RankReport& report) {
  const RankId id = report.process.rank;
  const Generation generation = report.process.generation;
  const GangId g = job.mesh(id.mesh).gang_of(id.rank);
  const Crew& crew = job.crew(id.mesh, g);
  // Who has the slot by now did not have it when that generation began: its next one waits until this one can act no
  // longer (I3).
  const bool ran = ran_on(crew.places, generation, index_in_gang(job.placement, g, id), where);
  const HostState& host = job.host(where);
  if (ran && generation == crew.generation && place_of(job, id) == where) {
    // A host that is being destroyed gets no more time, even if it is heard of once more; nor does one that kills what
    // runs there.
    const bool serves = is_joined(host.phase) && !host.failing;
    return {.of = ReportOf::kOfNow, .granted = serves && lives(job.member(id).stage) && !job.rank(id).reaped};
  }
  const std::vector<Incarnation>& owed_there = job.state.last_words[where.value()].owed;
  const bool owed = is_joined(host.phase) && report.phase == RankPhase::kEnded &&
                    std::find(owed_there.begin(), owed_there.end(), report.process) != owed_there.end();
  if (owed) return {.of = ReportOf::kOwed};
  if (ran && generation < crew.generation) return {.of = ReportOf::kSuperseded};
  return {};
}

}  // namespace

// Its slot may have gone elsewhere since it ended.
HostId place_of(const CoreFacts& job, RankId id) {
  const RankStage stage = job.member(id).stage;
  const GangId g = job.mesh(id.mesh).gang_of(id.rank);
  const std::vector<PastPlace>& places = job.crew(id.mesh, g).places;
  if ((stage != RankStage::kEnded && stage != RankStage::kLost) || places.empty()) return job.placement.host_of(id);
  return places.back().hosts[index_in_gang(job.placement, g, id)];
}

std::optional<HostId> where_is(const CoreFacts& job, RankId id) {
  if (job.has_rank(id)) return place_of(job, id);
  const auto place = crew_of(job.spec, id);
  if (!place) return std::nullopt;
  const Crew& crew = job.crew(place->key.mesh, place->key.gang);
  if (crew.hosts.empty()) return std::nullopt;
  return crew.hosts[crew_host(job.spec, *place)];
}

Judgement judge_beside(const CoreFacts& job, const CrewPlace& place, HostId where, Generation generation) {
  const Crew& crew = job.crew(place.key.mesh, place.key.gang);
  if (crew.hosts.empty()) return {};
  const std::size_t host = crew_host(job.spec, place);
  if (generation < crew.generation && ran_on(crew.places, generation, host, where)) {
    return {.of = ReportOf::kSuperseded};
  }
  if (generation != crew.generation || crew.hosts[host] != where) return {};
  const bool wanted = lives(crew.members[place.index].stage);
  return {.of = ReportOf::kOfNow, .granted = wanted && is_joined(job.host(where).phase)};
}

Judgement judge(const CoreFacts& job, HostId where, const RankReport& report) {
  const RankId id = report.process.rank;
  if (where.value() >= job.state.hosts.size()) return {};
  if (job.has_rank(id)) return judge_rank(job, where, report);
  if (const auto place = crew_of(job.spec, id)) return judge_beside(job, *place, where, report.process.generation);
  return {};
}

std::optional<HostId> where_ran(const CoreFacts& job, const Incarnation& process) {
  const auto& [id, generation] = process;
  for (std::uint32_t i = 0; i < job.state.last_words.size(); ++i) {
    for (const Incarnation& owed : job.state.last_words[i].owed) {
      if (owed.rank == id && owed.generation == generation) return HostId(i);
    }
  }
  return where_is(job, id);
}

bool is_on_its_way(const CoreFacts& job, RankId id, HostId from) {
  const CrewMember& last = job.member(id);
  return last.stage == RankStage::kEnded && !last.output_complete && place_of(job, id) == from;
}

bool is_of_last(const CoreFacts& job, const Incarnation& owed, HostId from) {
  return is_on_its_way(job, owed.rank, from) && owed.generation == job.crew_with(owed.rank).generation;
}

bool is_held(const CoreFacts& job, RankId id) {
  const std::vector<Rank>& held = job.state.holds.held[id.mesh.value()];
  return std::binary_search(held.begin(), held.end(), id.rank);
}

}  // namespace monarch
