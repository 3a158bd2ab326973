#include "tests/sim/commit_account.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

#include "tests/sim/incarnation_text.h"
#include "tests/sim/violation.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

std::string step_text(const std::optional<std::uint64_t>& step) { return step ? text("step ", *step) : "nothing"; }

// As its environment says it, wherever in the message that is.
std::optional<std::uint64_t> told_to(const Start& start, const RankStart& rank) {
  for (const auto* env : {&rank.env, &start.env}) {
    const auto found = env->find("MONARCH_COMMITTED_STEP");
    if (found == env->end()) continue;
    std::uint64_t step = 0;
    (void)std::from_chars(found->second.data(), found->second.data() + found->second.size(), step);
    return step;
  }
  return std::nullopt;
}

}  // namespace

CommitAccount::CommitAccount(const JobSpec& spec, const DurableAccount& durable, const Inheritance& continues)
    : spec_(spec), placement_(spec), durable_(durable) {
  for (const InheritedGang& from : continues.gangs) {
    if (from.checkpoint) gangs_[{from.mesh, from.gang}].had = from.checkpoint->step;
  }
}

std::optional<std::uint64_t> CommitAccount::newest(const GangKey& key, const Gang& gang, bool durable) const {
  std::map<std::pair<std::uint64_t, Generation>, std::set<Rank>> written;
  std::optional<std::uint64_t> newest = gang.had;
  const RankRange range = placement_.range_of(key.first, key.second);
  for (const Taken& taken : gang.taken) {
    if (durable && !durable_.holds(taken.ticket)) continue;
    auto& ranks = written[{taken.commit.step, taken.key.generation}];
    for (std::uint32_t i = 0; i < range.count; ++i) {
      const Rank rank(range.first + i);
      if (taken.commit.whole || rank == taken.key.rank.rank) ranks.insert(rank);
    }
    if (ranks.size() == range.count) newest = std::max(newest.value_or(0), taken.commit.step);
  }
  return newest;
}

void CommitAccount::started(const Incarnation& key) {
  Generation& highest = gangs_[key_of(key.rank)].started;
  highest = std::max(highest, key.generation);
}

void CommitAccount::journalled(const Ticket& ticket, const Incarnation& key, const CommitRequest& commit) {
  const GangKey gang_key = key_of(key.rank);
  Gang& gang = gangs_[gang_key];
  must(key.generation >= gang.started, "I20",
       text("a commit of ", incarnation_text(key), " is journalled, and a later one has been started"));
  const auto said = wrote_.find(key);
  const bool known = said != wrote_.end() && said->second.contains(commit.number);
  must(known && said->second.at(commit.number) == commit, "I20",
       text("step ", commit.step, " of ", incarnation_text(key), " is journalled, which it never said"));
  gang.taken.push_back({ticket, key, commit});
  // What lies far below is of no interest.
  if (gang.taken.size() % 256 != 0) return;
  if (const auto step = newest(gang_key, gang, true)) {
    std::erase_if(gang.taken, [&](const Taken& taken) { return taken.commit.step < *step; });
  }
}

void CommitAccount::resumes(const Ticket& ticket, const Start& start) {
  if (start.ranks.empty() || start.mesh.value() >= spec_.meshes.size()) return;
  const GangKey key{start.mesh, start.gang};
  Gang& gang = gangs_[key];
  const auto step = told_to(start, start.ranks.front());
  auto& [decided, known] = gang.resumed[start.generation];
  if (decided != Ticket()) return must(known == step, "I20", "two ranks of a generation go on from different steps");
  decided = ticket;
  known = step;
  const auto have = newest(key, gang, false);
  must(step == have, "I20",
       text("gang ", key.second.value(), " of mesh ", key.first.value(), " goes on from ", step_text(step),
            ", and all its ranks have committed ", step_text(have)));
}

void CommitAccount::resumes_on_the_wire(const Start& start) const {
  const auto gang = gangs_.find({start.mesh, start.gang});
  if (gang == gangs_.end()) return;
  const auto known = gang->second.resumed.find(start.generation);
  for (const RankStart& rank : start.ranks) {
    const auto step = told_to(start, rank);
    must(known != gang->second.resumed.end() && known->second.second == step, "I20",
         text("a START that is said again goes on from ", step_text(step)));
  }
}

void CommitAccount::answered(const CommitAnswer& answer) {
  if (!answer.committed) return;
  const Incarnation key = answer.process;
  const GangKey gang_key = key_of(key.rank);
  Gang& gang = gangs_[gang_key];
  const auto said = wrote_.find(key);
  must(said != wrote_.end() && said->second.contains(answer.number), "I20",
       text(incarnation_text(key), " is answered what it never asked"));
  const std::uint64_t step = said->second.at(answer.number).step;
  const auto have = newest(gang_key, gang, true);
  const bool durable = std::any_of(gang.taken.begin(), gang.taken.end(), [&](const Taken& taken) {
    const bool its_own = taken.key.rank == key.rank || taken.commit.whole;
    return its_own && taken.key.generation == key.generation && taken.commit.step == step &&
           durable_.holds(taken.ticket);
  });
  // What all have is committed, whichever generation said it, and below that it is no matter of record any more.
  must(durable || (have && step <= *have), "J1",
       text("step ", step, " of ", incarnation_text(key), " counts before it is durable"));
  must(!answer.gang || (have && *answer.gang <= *have), "J1",
       text(incarnation_text(key), " is told that its gang has ", step_text(answer.gang), ", and durable is ",
            step_text(have)));
  if (answer.gang) gang.told = std::max(gang.told.value_or(0), *answer.gang);
}

void CommitAccount::after_event(const JobState& state) const {
  for (const auto& [key, gang] : gangs_) {
    if (!gang.told) continue;
    const auto& newest = state_parts::gang(state, key.first, key.second).commits.newest;
    must(newest && newest->step >= *gang.told, "I20",
         text("gang ", key.second.value(), " of mesh ", key.first.value(), " had committed step ", *gang.told,
              ", and now has ", step_text(newest ? std::optional(newest->step) : std::nullopt)));
  }
}

void CommitAccount::recovered() {
  for (auto& [key, gang] : gangs_) {
    std::erase_if(gang.taken, [this](const Taken& taken) { return !durable_.holds(taken.ticket); });
    std::erase_if(gang.resumed, [this](const auto& one) { return !durable_.holds(one.second.first); });
  }
}

}  // namespace monarch::sim
