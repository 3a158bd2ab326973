#include "worker/core/vault/vault_keep.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace monarch {
namespace {

constexpr RankId kRank{MeshId(0), Rank(1)};

HeldCheckpoint held(std::uint64_t generation, std::uint64_t step, bool complete = true, RankId rank = kRank) {
  return {{rank, generation, step}, GangId(0), complete};
}

VaultGangs gang(std::uint64_t generation, std::optional<std::uint64_t> committed,
                std::optional<std::uint64_t> resumed = std::nullopt) {
  return {{{MeshId(0), GangId(0)},
           VaultGang{.mesh = MeshId(0),
                     .gang = GangId(0),
                     .generation = generation,
                     .committed = committed,
                     .resumed = resumed,
                     .targets = {},
                     .passed = std::nullopt}}};
}

VaultGangs with_passed(VaultGangs gangs, std::uint64_t step) {
  for (auto& [id, gang] : gangs) gang.passed = step;
  return gangs;
}

std::vector<std::uint64_t> steps_given_up(std::vector<HeldCheckpoint> all, const VaultGangs& gangs) {
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  std::vector<std::uint64_t> steps;
  for (const VaultKey& key : to_give_up(all, gangs)) steps.push_back(key.step);
  return steps;
}

using Steps = std::vector<std::uint64_t>;

TEST(VaultKeep, KeepsTheLastTwoThatTheGangHasCommitted) {
  EXPECT_EQ(steps_given_up({held(1, 10), held(1, 20), held(1, 30), held(1, 40)}, gang(1, 30)), Steps{10});
  EXPECT_EQ(steps_given_up({held(1, 10), held(1, 20), held(1, 30), held(1, 40)}, gang(1, 40)), (Steps{10, 20}));
}

TEST(VaultKeep, KeepsAllOfAGangThatHasCommittedNothing) {
  EXPECT_EQ(steps_given_up({held(1, 10), held(1, 20), held(1, 30)}, gang(1, std::nullopt)), Steps{});
}

TEST(VaultKeep, GivesUpWhatAnEarlierGenerationSavedBeyondTheCommittedStep) {
  EXPECT_EQ(steps_given_up({held(1, 10), held(1, 20), held(1, 30), held(2, 30)}, gang(2, 20)), Steps{30});
  EXPECT_EQ(steps_given_up({held(1, 10)}, gang(2, std::nullopt)), Steps{10});
}

TEST(VaultKeep, KeepsWhatTheTableDoesNotKnowYet) { EXPECT_EQ(steps_given_up({held(3, 30)}, gang(2, 20)), Steps{}); }

TEST(VaultKeep, KeepsTheStepThatTheGenerationBeganWithUntilALaterOneIsCommitted) {
  EXPECT_EQ(steps_given_up({held(1, 10), held(2, 20), held(2, 30)}, gang(2, 10, 10)), Steps{});
  EXPECT_EQ(steps_given_up({held(1, 10)}, gang(2, std::nullopt, 10)), Steps{});
  EXPECT_EQ(steps_given_up({held(1, 10), held(2, 20), held(2, 30), held(2, 40)}, gang(2, 30, 10)), Steps{10});
}

TEST(VaultKeep, GivesUpWhatThePresentGenerationHasPassed) {
  EXPECT_EQ(steps_given_up({held(1, 10), held(1, 20), held(1, 30)}, with_passed(gang(1, std::nullopt), 20)), Steps{10});
  EXPECT_EQ(steps_given_up({held(1, 10), held(1, 20), held(1, 30)}, with_passed(gang(1, 10), 30)), Steps{20});
  EXPECT_EQ(steps_given_up({held(1, 10), held(2, 20)}, with_passed(gang(2, std::nullopt, 10), 20)), Steps{})
      << "it began with step 10";
  EXPECT_EQ(steps_given_up({held(3, 20)}, with_passed(gang(2, 10), 30)), Steps{}) << "a later one has passed nothing";
}

TEST(VaultKeep, KeepsNoOldStepWhereTheNewestIsNot) {
  EXPECT_EQ(steps_given_up({held(1, 10), held(1, 20)}, gang(1, 90)), (Steps{10, 20}));
}

TEST(VaultKeep, GivesUpTheOneBeforeWhereThereIsNoRoom) {
  const std::vector<HeldCheckpoint> all = {held(1, 10), held(1, 20), held(1, 30)};
  const auto given_up = to_give_up(all, gang(1, 20), VaultRoom::kNone);
  ASSERT_EQ(given_up.size(), 1U);
  EXPECT_EQ(given_up[0].step, 10U);
}

TEST(VaultKeep, CountsNoneThatIsOnItsWayForTheOneBefore) {
  EXPECT_EQ(steps_given_up({held(1, 10), held(1, 20, false), held(1, 30)}, gang(1, 30)), Steps{20});
}

TEST(VaultKeep, KeepsNothingOfAGangThatIsDone) {
  EXPECT_EQ(steps_given_up({held(1, 10), held(1, 20)}, {}), (Steps{10, 20}));
}

TEST(VaultKeep, LooksAtEachRankAlone) {
  const RankId other{MeshId(0), Rank(2)};
  EXPECT_EQ(steps_given_up({held(1, 10), held(1, 20), held(1, 30), held(1, 20, true, other), held(1, 30, true, other)},
                           gang(1, 30)),
            Steps{10});
}

}  // namespace
}  // namespace monarch
