#include "worker/core/post/long_waits.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kNamedGroups = 4;
constexpr std::size_t kNamedRanks = 8;

// The calls of one who waits, to one endpoint of a mesh.
struct WaitGroup {
  std::string who;
  const CallTable::Waiting* oldest = nullptr;
  std::set<Rank> ranks;
  std::size_t calls = 0;
};

std::string words_of_group(const WaitGroup& group, const RosterView& roster) {
  std::vector<std::string> names;
  for (const Rank rank : group.ranks) {
    if (names.size() == kNamedRanks) break;
    names.push_back(roster.rank_name({group.oldest->mesh, rank}));
  }
  return text(group.who, " waits for ", group.oldest->what, " of ", join(names, ", "),
              group.ranks.size() > names.size() ? text(" and ", group.ranks.size() - names.size(), " others") : "",
              " for ", to_text(group.oldest->since), group.calls > 1 ? text(", in ", group.calls, " calls") : "");
}

}  // namespace

std::string words_of(const std::vector<CallTable::Waiting>& waits,
                     const std::function<std::string(const CallKey&)>& who_of, const RosterView& roster) {
  std::vector<WaitGroup> groups;
  std::map<std::tuple<std::string, std::string, MeshId>, std::size_t> places;
  for (const CallTable::Waiting& wait : waits) {
    std::string who = who_of(wait.call);
    const auto [place, is_new] = places.try_emplace({who, wait.what, wait.mesh}, groups.size());
    if (is_new) groups.push_back({.who = std::move(who), .oldest = &wait, .ranks = {}, .calls = 0});
    WaitGroup& group = groups[place->second];
    if (wait.since > group.oldest->since) group.oldest = &wait;
    group.ranks.insert(wait.ranks.begin(), wait.ranks.end());
    ++group.calls;
  }
  std::vector<std::string> lines;
  std::size_t named = 0;
  for (std::size_t i = 0; i < std::min(groups.size(), kNamedGroups); ++i) {
    lines.push_back(words_of_group(groups[i], roster));
    named += groups[i].calls;
  }
  const std::size_t others = waits.size() - named;
  if (others > 0) lines.push_back(text(others, others == 1 ? " other call waits, too" : " other calls wait, too"));
  return join(lines, "; ");
}

}  // namespace monarch
