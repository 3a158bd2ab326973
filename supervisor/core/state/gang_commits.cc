#include "supervisor/core/state/gang_commits.h"

#include <algorithm>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

CommitDecision said_before(const RankCommit& before, const CommitRequest& asked) {
  if (before.what == asked.what) return {.ruling = CommitRuling::kTaken, .why = {}};
  return refused_commit(text("step ", asked.step, " is committed already, as `", printable(before.what), "`"));
}

const std::vector<RankCommit>* ahead_of(const GangCommits& known, const Committer& who) {
  if (known.ahead_generation != who.generation || known.ahead.empty()) return nullptr;
  return &known.ahead[who.rank];
}

bool has(const std::vector<RankCommit>& commits, std::uint64_t step) {
  return std::any_of(commits.begin(), commits.end(), [step](const RankCommit& one) { return one.step == step; });
}

// Snapshots of the journal hold what all ranks have said: of the newest checkpoint, of the one that is resumed, and of
// steps ahead. The share of a rank is a third for each of these; so the next step always has room.
std::size_t longest_name(const Committer& who) { return std::min(kCommitWhatBytes, who.names / 3); }

// Of the rank, or of the one of its gang that has said most.
CommitDecision if_names_fit(const GangCommits& known, const Committer& who, const CommitRequest& asked) {
  std::size_t most = 0;
  for (std::uint32_t rank = 0; rank < who.ranks && ahead_of(known, who) != nullptr; ++rank) {
    if (rank != who.rank && !asked.whole) continue;
    std::size_t bytes = 0;
    for (const RankCommit& one : known.ahead[rank]) bytes += one.what.size();
    most = std::max(most, bytes);
  }
  if (most + asked.what.size() <= who.names / 3) return {};
  return refused_commit(text("what this rank's steps that others of its gang have not are called would have ",
                             most + asked.what.size(), " bytes, and in a job of this size a rank has ", who.names / 3,
                             " for that: call them by less, or wait for the others"));
}

void forget_passed(GangCommits& known, const Generation& generation) {
  const std::optional<std::uint64_t> passed = passed_step(known, generation);
  if (!passed) return;
  for (std::vector<RankCommit>& ahead : known.ahead) {
    std::erase_if(ahead, [passed](const RankCommit& one) { return one.step < *passed; });
  }
}

}  // namespace

CommitDecision refused_commit(std::string why) { return {.ruling = CommitRuling::kRefuse, .why = std::move(why)}; }

CommitDecision rule_commit(const GangCommits& known, const Committer& who, const CommitRequest& asked) {
  MONARCH_ASSERT(who.rank < who.ranks);
  // Keepers let nothing else pass; a host that lies must not write into other ranks' environments, or fill the journal
  // (I22).
  if (asked.what.size() > longest_name(who) || !is_printable_ascii(asked.what)) {
    return refused_commit(text("what a checkpoint is called has at most ", longest_name(who),
                               " printable characters of ASCII",
                               who.names / 3 < kCommitWhatBytes ? " in a job of this size" : ""));
  }
  if (known.newest && asked.step == known.newest->step) {
    return said_before({asked.step, known.newest->what[who.rank]}, asked);
  }
  if (known.newest && asked.step < known.newest->step) {
    return refused_commit(text("the gang has committed step ", known.newest->step, " in generation ",
                               known.newest->generation.counter, ": a step below it is none any more"));
  }
  const std::vector<RankCommit>* ahead = ahead_of(known, who);
  if (ahead == nullptr || ahead->empty()) return if_names_fit(known, who, asked);
  const RankCommit& newest = ahead->back();
  // The same step for all of the gang is more than was said before.
  if (asked.step == newest.step && !(asked.whole && asked.what == newest.what)) return said_before(newest, asked);
  if (asked.step < newest.step) {
    return refused_commit(text("this rank has committed step ", newest.step, " already: steps only rise"));
  }
  if (!asked.whole && ahead->size() >= GangCommits::kAhead) {
    return {.ruling = CommitRuling::kWait,
            .why = text("this rank has committed ", GangCommits::kAhead,
                        " steps that others of its gang have not: each rank commits, or one with OF=gang for all")};
  }
  return if_names_fit(known, who, asked);
}

std::optional<std::uint64_t> passed_step(const GangCommits& known, const Generation& generation) {
  if (known.ahead_generation != generation || known.ahead.empty()) return std::nullopt;
  std::optional<std::uint64_t> lowest;
  for (const std::vector<RankCommit>& ahead : known.ahead) {
    if (ahead.empty()) return std::nullopt;
    lowest = std::min(lowest.value_or(ahead.back().step), ahead.back().step);
  }
  return lowest;
}

bool take_commit(GangCommits& known, const Committer& who, const CommitRequest& asked) {
  MONARCH_ASSERT_BECAUSE(!known.newest || asked.step > known.newest->step,
                         "I20: a gang's committed step never decreases");
  MONARCH_ASSERT_BECAUSE(who.generation >= known.ahead_generation, "I20: a commit is of the gang's newest generation");
  if (known.ahead_generation != who.generation || known.ahead.empty()) {
    known.ahead_generation = who.generation;
    known.ahead.assign(who.ranks, {});
  }
  for (std::uint32_t rank = 0; rank < who.ranks; ++rank) {
    if (rank != who.rank && !asked.whole) continue;
    std::vector<RankCommit>& ahead = known.ahead[rank];
    // Said for all, it replaces what a rank had said of this step for itself.
    if (asked.whole) std::erase_if(ahead, [&asked](const RankCommit& one) { return one.step == asked.step; });
    ahead.push_back({asked.step, asked.what});
  }
  const auto reached = [&asked](const auto& ahead) { return has(ahead, asked.step); };
  if (!std::all_of(known.ahead.begin(), known.ahead.end(), reached)) {
    forget_passed(known, who.generation);
    return false;
  }
  known.newest = GangCheckpoint{.step = asked.step, .generation = who.generation, .what = {}};
  for (std::vector<RankCommit>& ahead : known.ahead) {
    for (const RankCommit& one : ahead) {
      if (one.step == asked.step) known.newest->what.push_back(one.what);
    }
    std::erase_if(ahead, [&asked](const RankCommit& one) { return one.step <= asked.step; });
  }
  return true;
}

}  // namespace monarch
