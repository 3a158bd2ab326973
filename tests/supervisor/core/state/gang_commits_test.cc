#include "supervisor/core/state/gang_commits.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

constexpr Generation kFirst{Term(1), 1};
constexpr Generation kSecond{Term(1), 2};

// A gang of two ranks.
class Gang {
 public:
  CommitRuling commit(std::uint32_t rank, std::uint64_t step, const std::string& what = "", bool whole = false) {
    const Committer who{.generation = generation, .rank = rank, .ranks = 2, .names = names};
    const CommitRequest asked{.number = 1, .step = step, .what = what, .whole = whole};
    const CommitDecision decision = rule_commit(commits, who, asked);
    why = decision.why;
    if (decision.ruling == CommitRuling::kTake) moved = take_commit(commits, who, asked);
    return decision.ruling;
  }

  GangCommits commits;
  Generation generation = kFirst;
  std::size_t names = kCommitNamesBytes;
  bool moved = false;
  std::string why;
};

TEST(GangCommits, CountOnceEveryRankHasTheStep) {
  Gang gang;
  EXPECT_EQ(gang.commit(0, 10, "a"), CommitRuling::kTake);
  EXPECT_FALSE(gang.moved);
  EXPECT_FALSE(gang.commits.newest);
  EXPECT_EQ(gang.commit(1, 10, "b"), CommitRuling::kTake);
  EXPECT_TRUE(gang.moved);
  EXPECT_EQ(gang.commits.newest->step, 10U);
  EXPECT_EQ(gang.commits.newest->generation, kFirst);
  EXPECT_EQ(gang.commits.newest->what, (std::vector<std::string>{"a", "b"}));
}

TEST(GangCommits, AreTheNewestThatAllHaveAndNotTheOldestOfTheNewest) {
  Gang gang;
  for (const std::uint64_t step : {5U, 20U}) gang.commit(0, step);
  for (const std::uint64_t step : {5U, 10U}) gang.commit(1, step);
  EXPECT_EQ(gang.commits.newest->step, 5U) << "rank 0 never had step 10";
  gang.commit(1, 20);
  EXPECT_EQ(gang.commits.newest->step, 20U);
  EXPECT_TRUE(gang.commits.ahead[0].empty());
  EXPECT_TRUE(gang.commits.ahead[1].empty()) << "step 10 is none any more";
}

TEST(GangCommits, OfTwoGenerationsMakeNoCheckpoint) {
  Gang gang;
  gang.commit(0, 10);
  gang.commit(1, 10);
  gang.commit(0, 20, "of the first");
  gang.generation = kSecond;
  EXPECT_EQ(gang.commit(1, 20), CommitRuling::kTake);
  EXPECT_FALSE(gang.moved);
  EXPECT_EQ(gang.commits.newest->step, 10U);
  EXPECT_EQ(gang.commit(0, 15), CommitRuling::kTake) << "what it said of step 20 in the first generation is over";
  EXPECT_EQ(gang.commit(0, 20, "of the second"), CommitRuling::kTake);
  EXPECT_EQ(gang.commits.newest->step, 20U);
  EXPECT_EQ(gang.commits.newest->generation, kSecond);
  EXPECT_EQ(gang.commits.newest->what[0], "of the second");
}

TEST(GangCommits, AreCalledWhatAKeeperWouldHaveLetPass) {
  Gang gang;
  for (const std::string& what :
       {std::string(kCommitWhatBytes + 1, 'x'), std::string("a\nb"), std::string("a\0b", 3)}) {
    EXPECT_EQ(gang.commit(0, 10, what), CommitRuling::kRefuse) << what;
  }
  EXPECT_EQ(gang.commit(0, 10, std::string(kCommitWhatBytes, 'x')), CommitRuling::kTake);
}

TEST(GangCommits, AreCalledByNoMoreThanARanksShare) {
  Gang gang;
  gang.names = 30;
  EXPECT_EQ(gang.commit(0, 10, "aaaaaaaaaaa"), CommitRuling::kRefuse);
  EXPECT_EQ(gang.why, "what a checkpoint is called has at most 10 printable characters of ASCII in a job of this size");
  EXPECT_EQ(gang.commit(0, 10, "aaaa"), CommitRuling::kTake);
  EXPECT_EQ(gang.commit(0, 11, "bbbb"), CommitRuling::kTake);
  EXPECT_EQ(gang.commit(0, 12, "ccc"), CommitRuling::kRefuse);
  EXPECT_EQ(
      gang.why,
      "what this rank's steps that others of its gang have not are called would have 11 bytes, and in a job of this "
      "size a rank has 10 for that: call them by less, or wait for the others");
  EXPECT_EQ(gang.commit(0, 11, "bbbb"), CommitRuling::kTaken) << "what is known stays known";
  EXPECT_EQ(gang.commit(1, 12, "ddd", true), CommitRuling::kRefuse) << "for all: also for those that have none left";
  EXPECT_EQ(gang.commit(1, 11, "dddddddddd"), CommitRuling::kTake) << "each rank has its own";
  EXPECT_TRUE(gang.moved);
  gang.commits.resumed = gang.commits.newest;
  gang.generation = kSecond;
  EXPECT_EQ(gang.commit(0, 12, "eeeeeeeeee", true), CommitRuling::kTake) << "the next step always has room";
  EXPECT_TRUE(gang.moved);
}

TEST(GangCommits, NeverGoBack) {
  Gang gang;
  gang.commit(0, 10, "a", true);
  gang.generation = kSecond;
  EXPECT_EQ(gang.commit(1, 9), CommitRuling::kRefuse);
  EXPECT_EQ(gang.why, "the gang has committed step 10 in generation 1: a step below it is none any more");
  EXPECT_EQ(gang.commit(1, 10, "b"), CommitRuling::kRefuse);
  EXPECT_EQ(gang.why, "step 10 is committed already, as `a`");
  EXPECT_EQ(gang.commit(1, 12), CommitRuling::kTake);
  EXPECT_EQ(gang.commit(1, 11), CommitRuling::kRefuse);
  EXPECT_EQ(gang.why, "this rank has committed step 12 already: steps only rise");
}

TEST(GangCommits, SaidAgainChangeNothing) {
  Gang gang;
  gang.commit(0, 10, "a");
  EXPECT_EQ(gang.commit(0, 10, "a"), CommitRuling::kTaken);
  gang.commit(1, 10, "b");
  EXPECT_EQ(gang.commit(0, 10, "a"), CommitRuling::kTaken);
  EXPECT_EQ(gang.commit(1, 10, "a"), CommitRuling::kRefuse);
  EXPECT_EQ(gang.commits.newest->step, 10U);
}

TEST(GangCommits, OfOneRankForAllCountAtOnce) {
  Gang gang;
  gang.commit(1, 30, "mine");
  EXPECT_EQ(gang.commit(0, 20, "ours", true), CommitRuling::kTake);
  EXPECT_TRUE(gang.moved);
  EXPECT_EQ(gang.commits.newest->step, 20U);
  EXPECT_EQ(gang.commits.newest->what, (std::vector<std::string>{"ours", "ours"}));
  EXPECT_EQ(gang.commit(1, 20, "ours", true), CommitRuling::kTaken) << "all may say it";
  gang.commit(0, 30, "other");
  EXPECT_EQ(gang.commits.newest->step, 30U) << "rank 1 had it before";
  EXPECT_EQ(gang.commits.newest->what, (std::vector<std::string>{"other", "mine"}));
}

TEST(GangCommits, OfOneRankForAllStandForWhatItHadSaidForItself) {
  Gang gang;
  gang.commit(0, 10, "a");
  EXPECT_EQ(gang.commit(0, 10, "a", true), CommitRuling::kTake);
  EXPECT_EQ(gang.commits.newest->step, 10U);
  EXPECT_EQ(gang.commits.newest->what, (std::vector<std::string>{"a", "a"}));
}

TEST(GangCommits, OfARankThatIsFarAheadWaitForTheOthers) {
  Gang gang;
  for (std::uint64_t step = 1; step <= GangCommits::kAhead; ++step) {
    EXPECT_EQ(gang.commit(0, step), CommitRuling::kTake) << step;
  }
  EXPECT_EQ(gang.commit(0, 100), CommitRuling::kWait);
  EXPECT_EQ(gang.why,
            "this rank has committed 8 steps that others of its gang have not: each rank commits, or one with OF=gang "
            "for all");
  gang.commit(1, 2);
  EXPECT_EQ(gang.commit(0, 100), CommitRuling::kTake) << "they have gone on";
  for (std::uint64_t step = 101; step <= 101 + GangCommits::kAhead; ++step) gang.commit(0, step);
  EXPECT_EQ(gang.commit(0, 200), CommitRuling::kWait);
  EXPECT_EQ(gang.commit(0, 200, "", true), CommitRuling::kTake) << "it says so for all";
  EXPECT_EQ(gang.commits.newest->step, 200U);
}

TEST(GangCommits, ArePassedBelowWhatEachRankHasCommittedLast) {
  Gang gang;
  EXPECT_EQ(passed_step(gang.commits, kFirst), std::nullopt);
  gang.commit(0, 10);
  gang.commit(0, 20);
  EXPECT_EQ(passed_step(gang.commits, kFirst), std::nullopt) << "rank 1 may still commit step 10";
  gang.commit(1, 15);
  EXPECT_EQ(passed_step(gang.commits, kFirst), 15U) << "and now it cannot";
  gang.commit(1, 30);
  EXPECT_EQ(passed_step(gang.commits, kFirst), 20U);
  EXPECT_EQ(passed_step(gang.commits, kSecond), std::nullopt) << "which has committed nothing";
  gang.commit(0, 30);
  EXPECT_EQ(gang.commits.newest->step, 30U);
  EXPECT_EQ(passed_step(gang.commits, kFirst), std::nullopt) << "of all of them counts the newest";
}

TEST(GangCommits, ThatArePassedDoNotCountAsAhead) {
  Gang gang;
  for (std::uint64_t step = 1; step <= GangCommits::kAhead; ++step) gang.commit(0, step, "mine");
  gang.commit(1, 9, "yours");
  EXPECT_EQ(gang.commit(0, 7, "mine"), CommitRuling::kRefuse) << "steps still only rise";
  EXPECT_EQ(gang.why, "this rank has committed step 8 already: steps only rise");
  EXPECT_EQ(gang.commit(0, 8, "mine"), CommitRuling::kTaken);
  EXPECT_EQ(gang.commit(0, 9, "mine"), CommitRuling::kTake);
  EXPECT_EQ(gang.commits.newest->step, 9U);
  EXPECT_EQ(gang.commits.newest->what, (std::vector<std::string>{"mine", "yours"}));
}

// One has the even ones and one the odd ones: none is ever the gang's, and none is remembered for long.
TEST(GangCommits, OfRanksThatNeverMeetAreFew) {
  Gang gang;
  for (std::uint64_t step = 1; step <= 1'000; ++step) {
    EXPECT_EQ(gang.commit(static_cast<std::uint32_t>(step % 2), step), CommitRuling::kTake) << step;
  }
  EXPECT_FALSE(gang.commits.newest);
  EXPECT_LE(gang.commits.ahead[0].size() + gang.commits.ahead[1].size(), 3U);
}

}  // namespace
}  // namespace monarch
