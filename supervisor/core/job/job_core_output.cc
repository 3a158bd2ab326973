// What ranks wrote last: it may still be on its way from their hosts when they have ended, and a host that is told to
// end would cut it off.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/facts/some_of.h"
#include "supervisor/core/job/job_core.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

std::vector<JobCore::LastWords> JobCore::output_on_its_way() const {
  std::vector<RankId> ranks;
  crews_.add_output_on_its_way(ranks);
  std::vector<LastWords> words;
  words.reserve(ranks.size());
  for (const RankId& id : ranks) words.push_back({.rank = id, .host = *where_is(basis_, id)});
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    for (const Incarnation& owed : state_.hosts[i].owed) {
      if (!is_of_last(basis_, owed, HostId(i))) words.push_back({.rank = owed.rank, .host = HostId(i)});
    }
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
  emit(event_of(EventKind::kOutputIncomplete, Severity::kWarning,
                text("what these ranks wrote last may be missing here; all of it is on their hosts: ",
                     join(names, ", "), unnamed > 0 ? text(" and ", unnamed, " more") : "")));
}

// Its generation is over, and it is about to be forgotten; or its host is to be ended.
void JobCore::note_owed(RankId id) {
  const HostId at = place_of(basis_, id);  // its slot may have gone elsewhere since
  HostState& where = host(at);
  // Of what does not end after SIGKILL no end of its output is expected either. Of a host that is lost it is told, once
  // that is sure.
  const bool nobody = is_cold(where.phase) || is_launching(where.phase) || is_launched(where.phase);
  if (!is_on_its_way(basis_, id, at) || where.wedged || nobody) return;
  const bool noted = std::any_of(where.owed.begin(), where.owed.end(), [&](const Incarnation& owed) {
    return owed.rank == id && is_of_last(basis_, owed, at);
  });
  if (noted) return;
  if (where.owed.empty()) where.owed_until = Instant::never();  // nobody waits for it
  where.owed.push_back({id, basis_.crew_with(id).generation});
}

// Its end is wanted. What is still to come of all that ran there, also of gangs that have ended for good or whose slots
// have left, has its time from now on; nothing: there is none, or its time is over.
bool JobCore::awaits_last_words(HostId id, Duration patience) {
  HostState& state = host(id);
  if (!is_joined(state.phase)) return false;
  each_gang([&](MeshId m, GangId g) {
    for (const RankId& r : placement_.ranks_of(m, g)) {
      if (is_on_its_way(basis_, r, id)) note_owed(r);
    }
  });
  if (state.owed.empty()) return false;
  if (state.owed_until == Instant::never()) state.owed_until = now_ + patience;
  return true;
}

// Of hosts that are to serve again, and were to be ended before their words were here: those wait for nobody.
void JobCore::forget_wishes() {
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    HostState& state = state_.hosts[i];
    const bool wanted = state.standing == HostStanding::kDrained ||
                        (spec_.is_on_request(HostId(i)) && serves_parked_alone(basis_, HostId(i)));
    if (!state.owed.empty() && !wanted) state.owed_until = Instant::never();
  }
}

void JobCore::settle_owed(HostId where, const RankReport& report) {
  if (!report.output_complete || host(where).owed.empty()) return;
  std::erase_if(host(where).owed, [&](const Incarnation& owed) { return owed == report.process; });
  waits_due_ = true;  // it may be ended now
}

// Its next one is started: of the one before nothing more is told where both ran on one host.
void JobCore::forget_owed(RankId id) {
  std::erase_if(host(placement_.host_of(id)).owed, [&](const Incarnation& owed) { return owed.rank == id; });
}

// It was waited for long enough, or nobody is left who would send it. Nothing of it is awaited any more.
void JobCore::owed_is_due(HostId id) {
  std::vector<LastWords> words;
  for (const Incarnation& owed : host(id).owed) {
    if (!is_of_last(basis_, owed, id)) words.push_back({.rank = owed.rank, .host = id});
  }
  host(id).owed.clear();
  each_gang([&](MeshId m, GangId g) {
    for (const RankId& r : placement_.ranks_of(m, g)) {
      if (!is_on_its_way(basis_, r, id)) continue;
      words.push_back({.rank = r, .host = id});
      crews_.forget_output(*crew_of(spec_, r));
    }
  });
  if (words.empty()) return;
  tell_incomplete_output(words);
  waits_due_ = true;
}

}  // namespace monarch
