#include "supervisor/core/accounts/last_words.h"

#include <algorithm>
#include <string>

#include "supervisor/core/facts/hosts.h"
#include "supervisor/core/facts/reports.h"
#include "supervisor/core/facts/some_of.h"
#include "transport/base/text.h"

namespace monarch {

std::vector<LastWords::Words> LastWords::on_their_way() const {
  std::vector<RankId> ranks;
  crews_.add_output_on_its_way(ranks);
  std::vector<Words> words;
  words.reserve(ranks.size());
  for (const RankId& id : ranks) words.push_back({.rank = id, .host = *where_is(basis_, id)});
  for (std::uint32_t i = 0; i < mine_.size(); ++i) {
    for (const Incarnation& owed : mine_[i].owed) {
      if (!is_of_last(basis_, owed, HostId(i))) words.push_back({.rank = owed.rank, .host = HostId(i)});
    }
  }
  return words;
}

void LastWords::tell(const std::vector<Words>& words) const {
  std::vector<std::string> names;
  for (const Words& last : words) {
    if (names.size() == kMostNamed) break;
    const std::string& folder = basis_.host(last.host).log_directory;
    names.push_back(text(log_mesh_names(basis_.spec)[last.rank.mesh.value()], "/", last.rank.rank.value(), " (",
                         basis_.name_of(last.host), folder.empty() ? "" : ":", folder, ")"));
  }
  const std::size_t unnamed = words.size() - names.size();
  basis_.emit(basis_.event(EventKind::kOutputIncomplete, Severity::kWarning,
                           text("what these ranks wrote last may be missing here; all of it is on their hosts: ",
                                join(names, ", "), unnamed > 0 ? text(" and ", unnamed, " more") : "")));
}

void LastWords::note(RankId id) {
  const HostId at = place_of(basis_, id);  // its slot may have gone elsewhere since
  const HostState& where = basis_.host(at);
  // Of what does not end after SIGKILL no end of its output is expected either. Of a host that is lost it is told, once
  // that is sure.
  const bool nobody = is_cold(where.phase) || is_launching(where.phase) || is_launched(where.phase);
  if (!is_on_its_way(basis_, id, at) || where.wedged || nobody) return;
  const bool noted = std::any_of(owed(at).begin(), owed(at).end(),
                                 [&](const Incarnation& one) { return one.rank == id && is_of_last(basis_, one, at); });
  if (noted) return;
  if (owed(at).empty()) no_haste(at);
  owed(at).push_back({id, basis_.crew_with(id).generation});
}

bool LastWords::awaited(HostId id, Duration patience) {
  if (!is_joined(basis_.host(id).phase)) return false;
  basis_.each_gang([&](MeshId m, GangId g) {
    for (const RankId& r : basis_.placement.ranks_of(m, g)) {
      if (is_on_its_way(basis_, r, id)) note(r);
    }
  });
  if (owed(id).empty()) return false;
  Instant& until = mine_[id.value()].until;
  if (until == Instant::never()) until = basis_.now + patience;
  return true;
}

void LastWords::no_haste(HostId id) { mine_[id.value()].until = Instant::never(); }

void LastWords::heard(HostId where, const RankReport& report) {
  if (!report.output_complete || owed(where).empty()) return;
  std::erase_if(owed(where), [&](const Incarnation& one) { return one == report.process; });
  basis_.waits_due = true;  // it may be ended now
}

void LastWords::forget(RankId id) {
  std::erase_if(owed(basis_.placement.host_of(id)), [&](const Incarnation& one) { return one.rank == id; });
}

void LastWords::give_up(HostId id) {
  std::vector<Words> words;
  for (const Incarnation& one : owed(id)) {
    if (!is_of_last(basis_, one, id)) words.push_back({.rank = one.rank, .host = id});
  }
  owed(id).clear();
  basis_.each_gang([&](MeshId m, GangId g) {
    for (const RankId& r : basis_.placement.ranks_of(m, g)) {
      if (!is_on_its_way(basis_, r, id)) continue;
      words.push_back({.rank = r, .host = id});
      crews_.forget_output(*crew_of(basis_.spec, r));
    }
  });
  if (words.empty()) return;
  tell(words);
  basis_.waits_due = true;
}

void LastWords::look_at_times() {
  for (std::uint32_t i = 0; i < mine_.size(); ++i) {
    if (!mine_[i].owed.empty() && mine_[i].until <= basis_.now) give_up(HostId(i));
  }
}

bool LastWords::any_comes() const {
  const std::vector<Words> missing = on_their_way();
  return std::any_of(missing.begin(), missing.end(), [this](const Words& words) {
    const HostState& where = basis_.host(words.host);
    return is_joined(where.phase) && (basis_.has_rank(words.rank) || !where.wedged);
  });
}

void LastWords::give_up_all() {
  const std::vector<Words> missing = on_their_way();
  if (!missing.empty()) tell(missing);
  for (const Words& words : missing) {
    if (basis_.has_rank(words.rank)) crews_.forget_output(*crew_of(basis_.spec, words.rank));  // it is told
  }
  for (HostWords& words : mine_) words.owed.clear();
}

void LastWords::returned() {
  for (HostWords& words : mine_) {
    if (!words.owed.empty()) not_before(words.until, basis_.now + drain_patience(basis_));
  }
}

}  // namespace monarch
