#include "supervisor/workers/input_desk.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::exited;
using fixtures::killed;

JobSpec job_with_input(std::optional<Rank> rank) {
  JobSpec spec = fixtures::job_that_recovers(2, 1, 4);
  spec.input = InputSpec{.mesh = MeshId(0), .rank = rank};
  return spec;
}

// Two gangs of one rank, each on a host of its own; the keepers are the test.
class InputDeskTest : public ::testing::Test {
 protected:
  void begin(std::optional<Rank> rank) {
    job_ = std::make_unique<fixtures::Driver>(job_with_input(rank));
    desk_ = std::make_unique<InputDesk>(
        job_->core,
        InputDeskOptions{
            .send = [this](HostId host, const Input& input) { sent_.emplace_back(host, input); },
            .at = [this](Instant when, std::function<void()> then) { timers_.emplace(when, std::move(then)); },
            .now = [this] { return now_; },
            .on_end = [this] { ++ends_; }});
  }
  void pass(Duration time) {
    now_ = now_ + time;
    while (!timers_.empty() && timers_.begin()->first <= now_) {
      const auto due = timers_.extract(timers_.begin());
      due.mapped()();
    }
  }
  void give(std::uint64_t offset, const std::string& bytes, bool end = false) {
    desk_->give(7, {.offset = offset, .bytes = bytes, .end = end}, [this](const Result<std::string>& with) {
      answers_.push_back(with.ok() ? "taken" : with.error().message);
    });
  }
  void take(std::uint32_t rank, std::uint64_t offset, bool over = false) {
    const RankId id{MeshId(0), Rank(rank)};
    desk_->taken(job_->core.placement().host_of(id),
                 {.process = {id, job_->crew(rank).generation}, .offset = offset, .over = over});
  }
  std::vector<std::string> answers() { return std::exchange(answers_, {}); }
  std::vector<std::pair<HostId, Input>> sent() { return std::exchange(sent_, {}); }
  using Words = std::vector<std::string>;

  std::unique_ptr<fixtures::Driver> job_;
  std::unique_ptr<InputDesk> desk_;
  std::vector<std::pair<HostId, Input>> sent_;
  std::multimap<Instant, std::function<void()>> timers_;
  std::vector<std::string> answers_;
  Instant now_ = Instant::since_boot(Duration::seconds(1000));
  int ends_ = 0;
};

TEST_F(InputDeskTest, GivesTheNextPieceOnceAllHaveTheOneBefore) {
  begin({});
  give(0, "one\n");
  EXPECT_TRUE(sent().empty()) << "nobody runs yet";
  job_->run_all();
  pass(InputDesk::kAgain);
  ASSERT_EQ(sent().size(), 2U);
  take(0, 4);
  EXPECT_EQ(answers(), Words{});
  pass(InputDesk::kAgain);
  const auto again = sent();
  ASSERT_EQ(again.size(), 1U) << "to whom has not said that it has it";
  EXPECT_EQ(again[0].second.ranks, (std::vector<RankId>{{MeshId(0), Rank(1)}}));
  take(1, 4);
  EXPECT_EQ(answers(), Words{"taken"});
  give(4, "", true);
  ASSERT_EQ(sent().size(), 2U);
  take(0, 4, true);
  take(1, 4, true);
  EXPECT_EQ(answers(), Words{"taken"});
}

TEST_F(InputDeskTest, CountsAPieceThatIsSaidAgainOnce) {
  begin(Rank(0));
  job_->run_all();
  give(0, "one\n");
  take(0, 4);
  EXPECT_EQ(answers(), Words{"taken"});
  (void)sent();
  give(0, "one\n");
  EXPECT_EQ(answers(), Words{"taken"});
  EXPECT_TRUE(sent().empty());
}

TEST_F(InputDeskTest, GoesOnWithARankThatIsStartedAgain) {
  begin(Rank(0));
  job_->run_all();
  give(0, "one\n");
  job_->ended(0, killed(9));
  ASSERT_EQ(job_->crew(0).generation.counter, 2U);
  (void)sent();
  pass(InputDesk::kAgain);
  EXPECT_TRUE(sent().empty()) << "it does not run yet";
  job_->give_ports();
  job_->report({MeshId(0), Rank(0)}, RankPhase::kRunning);
  pass(InputDesk::kAgain);
  const auto again = sent();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].second.generation.counter, 2U);
  EXPECT_EQ(again[0].second.bytes, "one\n");
  EXPECT_EQ(answers(), Words{});
}

TEST_F(InputDeskTest, TellsThatNobodyReadsAnyMore) {
  begin(Rank(0));
  job_->run_all();
  job_->ended(0, exited(0));
  give(0, "one\n");
  EXPECT_EQ(answers(), Words{"no rank reads it any more"});
}

TEST_F(InputDeskTest, GivesTheEndWhereItsViewerHasLeft) {
  begin(Rank(0));
  job_->run_all();
  give(0, "");
  EXPECT_EQ(answers(), Words{"taken"}) << "who gives it";
  pass(InputDesk::kPatience * 2);
  EXPECT_EQ(ends_, 0);
  desk_->left(8);
  pass(InputDesk::kPatience * 2);
  EXPECT_EQ(ends_, 0) << "another viewer";
  desk_->left(7);
  pass(InputDesk::kPatience);
  EXPECT_EQ(ends_, 1);
  const auto last = sent();
  ASSERT_EQ(last.size(), 1U);
  EXPECT_TRUE(last[0].second.end);
}

TEST_F(InputDeskTest, GivesTheEndWhereNobodyEverCame) {
  begin(Rank(0));
  job_->run_all();
  pass(InputDesk::kPatience);
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(sent().size(), 1U);
}

}  // namespace
}  // namespace monarch
