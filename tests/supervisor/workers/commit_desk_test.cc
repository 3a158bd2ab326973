#include "supervisor/workers/commit_desk.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

// A job of two ranks on two hosts, whose journal is as slow as the test says.
class CommitDeskTest : public testing::Test {
 protected:
  CommitDeskTest() : job_(fixtures::job_of(2, 1)) { job_.run_all(); }

  RankReport asks(std::uint32_t rank, std::uint64_t number, std::uint64_t step) const {
    RankReport report = job_.report_of({MeshId(0), Rank(rank)}, RankPhase::kRunning);
    report.commit = CommitRequest{.number = number, .step = step, .what = "ckpt"};
    return report;
  }
  void hear(const RankReport& report, std::uint32_t host = 0) { desk_.hear(HostId(host), report, now_); }
  void pass(Duration time) { now_ = now_ + time; }
  // What was answered since the last call: "host 0: 7 counts".
  std::vector<std::string> answers() { return std::exchange(answers_, {}); }

  fixtures::Driver job_;
  Instant now_ = Instant::since_boot(Duration::seconds(100));
  std::uint64_t tickets_ = 0;
  std::uint64_t durable_ = 0;
  std::vector<std::string> answers_;
  CommitDesk desk_{job_.core,
                   {.decide =
                        [this](const CoreEvent& event) {
                          job_.step(event);
                          return ++tickets_;
                        },
                    .is_durable = [this](std::uint64_t ticket) { return ticket <= durable_; },
                    .answer =
                        [this](HostId host, const CommitAnswer& answer) {
                          answers_.push_back("host " + std::to_string(host.value()) + ": " +
                                             std::to_string(answer.number) +
                                             (answer.committed ? " counts" : " does not: " + answer.why) +
                                             (answer.gang ? ", all have step " + std::to_string(*answer.gang) : ""));
                        }}};
};

using Desk = CommitDeskTest;
using Words = std::vector<std::string>;

TEST_F(Desk, JournalsACommitOnceAndAnswersItAgainOnlyOnceItsRecordIsDurable) {
  hear(asks(0, 1, 10));
  EXPECT_EQ(tickets_, 1U);
  EXPECT_EQ(answers(), Words{}) << "the core's own answer waits for the record";
  hear(asks(0, 1, 10));
  EXPECT_EQ(tickets_, 1U);
  EXPECT_EQ(answers(), Words{}) << "J1";
  durable_ = 1;
  hear(asks(0, 1, 10));
  EXPECT_EQ(tickets_, 1U);
  EXPECT_EQ(answers(), Words{"host 0: 1 counts"});
}

TEST_F(Desk, AnswersARankWhoseCommitAnotherMadeForItOnlyOnceThatRecordIsDurable) {
  RankReport for_all = asks(0, 1, 10);
  for_all.commit->whole = true;
  hear(for_all);
  EXPECT_EQ(tickets_, 1U);
  hear(asks(1, 1, 10), 1);
  EXPECT_EQ(answers(), Words{}) << "J1";
  durable_ = 1;
  hear(asks(1, 1, 10), 1);
  EXPECT_EQ(answers(), Words{"host 1: 1 counts, all have step 10"});
  EXPECT_EQ(tickets_, 1U);
}

// A rank that is refused may end by that: one that is faster than another on a busy machine is not.
TEST_F(Desk, LetsARankThatIsFarAheadWaitForItsGang) {
  const auto commits = [this](std::uint64_t step) {
    pass(CommitDesk::kFloor);
    hear(asks(0, step, step));
    durable_ = tickets_;
    hear(asks(0, step, step));
    return answers();
  };
  for (std::uint64_t step = 1; step <= GangCommits::kAhead; ++step) EXPECT_EQ(commits(step).size(), 1U) << step;
  const std::uint64_t next = GangCommits::kAhead + 1;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(commits(next), Words{}) << "nothing is said while the other may go on";
  hear(asks(1, 1, 2), 1);
  durable_ = tickets_;
  EXPECT_EQ(commits(next).back(), "host 0: 9 counts, all have step 2");
  EXPECT_EQ(desk_.refused(), 0U);
  (void)commits(next + 1);
  EXPECT_EQ(commits(next + 2), Words{});
  pass(CommitDesk::kGangPatience);
  EXPECT_EQ(commits(next + 2).back(),
            "host 0: 11 does not: for 45s this rank has committed 8 steps that others of its gang have not: each rank "
            "commits, or one with OF=gang for all");
  EXPECT_EQ(desk_.refused(), 1U);
}

TEST_F(Desk, RefusesARankOfAnEarlierGenerationAndCountsItOnce) {
  RankReport thawed = asks(0, 1, 10);
  thawed.process.generation = Generation{Term(0), 9};
  const Words refusal{
      "host 0: 1 does not: generation 9 of this gang is over, 1 has its place: what it writes does not count"};
  hear(thawed);
  EXPECT_EQ(answers(), refusal);
  hear(thawed);
  EXPECT_EQ(answers(), refusal) << "the answer may have been lost";
  EXPECT_EQ(desk_.refused(), 1U);
  EXPECT_EQ(tickets_, 0U);
  thawed.commit->number = 2;
  hear(thawed);
  EXPECT_EQ(desk_.refused(), 2U);
}

TEST_F(Desk, CountsARefusalOnceHoweverManyAskInTurn) {
  RankReport thawed = asks(0, 3, 10);
  thawed.process.generation = Generation{Term(0), 9};
  RankReport late = asks(0, 1, 10);
  late.commit->what = std::string(kCommitWhatBytes + 1, 'x');
  for (int i = 0; i < 3; ++i) {
    hear(thawed, 1);
    hear(late);
  }
  EXPECT_EQ(desk_.refused(), 2U);
  hear(asks(0, 2, 10));  // one that counts, between
  hear(thawed, 1);
  EXPECT_EQ(desk_.refused(), 2U);
  thawed.commit->number = 4;
  hear(thawed, 1);
  EXPECT_EQ(desk_.refused(), 3U);
}

TEST_F(Desk, TakesNoCommitOfARankFromAnotherHost) {
  hear(asks(0, 1, 10), 1);
  EXPECT_EQ(answers(),
            Words{"host 1: 1 does not: the supervisor has given this rank up: what it writes does not count"});
  EXPECT_EQ(tickets_, 0U);
  RankReport nobody = asks(0, 1, 10);
  nobody.process.rank = {MeshId(3), Rank(0)};
  hear(nobody);
  EXPECT_EQ(answers(), Words{});
}

TEST_F(Desk, TakesTheNextCommitOfARankWhenItHasKeptItsDistance) {
  hear(asks(0, 1, 10));
  hear(asks(0, 2, 11));
  EXPECT_EQ(tickets_, 1U);
  hear(asks(1, 1, 10), 1);
  EXPECT_EQ(tickets_, 2U) << "another rank";
  pass(CommitDesk::kFloor);
  hear(asks(0, 2, 11));
  EXPECT_EQ(tickets_, 3U);
}

}  // namespace
}  // namespace monarch
