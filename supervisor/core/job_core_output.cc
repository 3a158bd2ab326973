// What ranks wrote last: it may still be on its way from their hosts when they have ended, and a host that is told to end would cut it off.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/job_core.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// For the output of ranks that have ended on machines of their own to arrive.
constexpr Duration kCopyDeadline = Duration::seconds(60);

// Of ranks whose output did not; their number is told besides.
constexpr std::size_t kMostNamed = 8;

}  // namespace

// Of hosts with a disk of their own the output travels; of virtual ones it is where it belongs.
Duration JobCore::drain_patience() const {
  return std::holds_alternative<LaunchLocal>(spec_.launch) ? limits::kKillDeadline : kCopyDeadline;
}

std::vector<JobCore::LastWords> JobCore::output_on_its_way() const {
  std::vector<RankId> ranks;
  for (std::uint32_t m = 0; m < state_.meshes.size(); ++m) {
    for (std::uint32_t r = 0; r < state_.meshes[m].ranks.size(); ++r) {
      const RankState& rank = state_.meshes[m].ranks[r];
      if (rank.stage == RankStage::kEnded && !rank.output_complete) ranks.push_back({MeshId(m), Rank(r)});
    }
  }
  add_prepare_output_on_its_way(ranks);
  add_standby_output_on_its_way(ranks);
  std::vector<LastWords> words;
  words.reserve(ranks.size());
  for (const RankId& id : ranks) words.push_back({.rank = id, .host = *where_is(id)});
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    for (const OwedOutput& owed : state_.hosts[i].owed) words.push_back({.rank = owed.rank, .host = HostId(i)});
  }
  return words;
}

void JobCore::tell_incomplete_output(const std::vector<LastWords>& words) {
  std::vector<std::string> names;
  for (const LastWords& last : words) {
    if (names.size() == kMostNamed) break;
    const std::string& folder = host(last.host).log_directory;
    names.push_back(text(log_mesh_names(spec_)[last.rank.mesh.value()], "/", last.rank.rank.value(), " (",
                         hosts_[last.host.value()].name, folder.empty() ? "" : ":", folder, ")"));
  }
  const std::size_t unnamed = words.size() - names.size();
  emit(event_of("output.incomplete", Severity::kWarning,
                text("what these ranks wrote last may be missing here; all of it is on their hosts: ",
                     join(names, ", "), unnamed > 0 ? text(" and ", unnamed, " more") : "")));
}

// Its generation is over, and it is about to be forgotten.
void JobCore::note_owed(RankId id) {
  const RankState& slot = rank(id);
  HostState& where = host(placement_.host_of(id));
  const bool expected = slot.stage == RankStage::kEnded && !slot.output_complete;
  // Of what does not end after SIGKILL no end of its output is expected either.
  if (!expected || where.wedged || where.phase != HostPhase::kJoined) return;
  where.owed.push_back({.rank = id, .generation = gang(id.mesh, mesh_spec(id.mesh).gang_of(id.rank)).generation});
  where.owed_until = now_ + drain_patience();
}

bool JobCore::owes(HostId where, const RankReport& report) const {
  if (where.value() >= state_.hosts.size()) return false;
  const HostState& state = state_.hosts[where.value()];
  return state.phase == HostPhase::kJoined && report.phase == RankPhase::kEnded &&
         std::any_of(state.owed.begin(), state.owed.end(), [&](const OwedOutput& owed) {
           return owed.rank == report.rank && owed.generation == report.generation;
         });
}

// Would its end cut off what is still awaited?
bool JobCore::owes_output(HostId id) const {
  const HostState& state = state_.hosts[id.value()];
  return state.phase == HostPhase::kJoined && !state.owed.empty();
}

void JobCore::settle_owed(HostId where, const RankReport& report) {
  if (!report.output_complete || host(where).owed.empty()) return;
  std::erase_if(host(where).owed, [&](const OwedOutput& owed) {
    return owed.rank == report.rank && owed.generation == report.generation;
  });
  slots_due_ = true;  // it may be ended now
}

// Its next one begins: of the one before nothing more is told where both ran on one host.
void JobCore::forget_owed(RankId id) {
  std::erase_if(host(placement_.host_of(id)).owed, [&](const OwedOutput& owed) { return owed.rank == id; });
}

// It was waited for long enough.
void JobCore::owed_is_due(HostId id) {
  std::vector<LastWords> words;
  for (const OwedOutput& owed : std::exchange(host(id).owed, {})) words.push_back({.rank = owed.rank, .host = id});
  tell_incomplete_output(words);
  slots_due_ = true;
}

std::optional<HostId> JobCore::where_is(RankId id, Generation generation) const {
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    for (const OwedOutput& owed : state_.hosts[i].owed) {
      if (owed.rank == id && owed.generation == generation) return HostId(i);
    }
  }
  return where_is(id);
}

}  // namespace monarch
