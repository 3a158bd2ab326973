// Where the time of gangs goes, through failures and stops: at each instant in one bin.

#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <string>
#include <utility>

#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::exited;
using fixtures::job_that_recovers;
using fixtures::killed;

constexpr RankId kFirst{MeshId(0), Rank(0)};

class JobCoreLedger : public testing::Test {
 protected:
  void pass(Duration time) { driver_.now = driver_.now + time; }
  void steps(std::uint64_t step) {
    driver_.step(GangProgressed{.mesh = MeshId(0),
                                .gang = GangId(0),
                                .generation = driver_.crew(0).generation,
                                .step = step,
                                .at = driver_.now},
                 Duration());
  }
  // Milliseconds of the gang, by bin; those that are none are left out.
  std::map<std::string, std::int64_t> spent(std::uint32_t gang = 0) const {
    std::map<std::string, std::int64_t> spent;
    for (std::size_t i = 0; i < kTimeBins; ++i) {
      const auto bin = static_cast<TimeBin>(i);
      const Duration time = spent_in(driver_.gang(gang).time, bin, driver_.now);
      if (time > Duration()) spent[std::string(name_of(bin))] = time.count_milliseconds();
    }
    return spent;
  }
  std::int64_t all(std::uint32_t gang = 0) const {
    std::int64_t sum = 0;
    for (const auto& [bin, milliseconds] : spent(gang)) sum += milliseconds;
    return sum;
  }
  static double of(const std::map<std::string, std::int64_t>& spent, const std::string& bin) {
    const auto found = spent.find(bin);
    return found == spent.end() ? 0.0 : static_cast<double>(found->second);
  }

  Driver driver_{job_that_recovers(2, 1, 4)};
};

TEST_F(JobCoreLedger, TellsNewStepsFromThoseThatAreDoneAgain) {
  const Instant begun = driver_.now;
  driver_.run_all();
  pass(Duration::seconds(2));
  EXPECT_NEAR(of(spent(), "new"), 2'000, 8) << "it was ready, and nobody knows of steps";
  steps(1);
  EXPECT_NEAR(of(spent(), "starting"), 2'000, 8) << "it does name steps: until then it was starting";
  pass(Duration::seconds(10));
  EXPECT_NEAR(of(spent(), "new"), 10'000, 8);
  driver_.fail_gang(kFirst, killed(SIGSEGV), 100);
  driver_.start_again(0);
  pass(Duration::seconds(1));
  steps(61);
  pass(Duration::seconds(4));
  steps(101);
  pass(Duration::seconds(5));
  EXPECT_NEAR(of(spent(), "redone"), 4'000, 8);
  EXPECT_GE(of(spent(), "starting"), 3'000);
  EXPECT_LT(of(spent(), "starting"), 3'100);
  EXPECT_GT(of(spent(), "deciding"), 0);
  EXPECT_GT(of(spent(), "launching"), 0);
  for (const std::uint32_t gang : {0U, 1U}) {
    EXPECT_NEAR(static_cast<double>(all(gang)), static_cast<double>((driver_.now - begun).count_milliseconds()), 8.0)
        << "cut to milliseconds, of eight bins";
  }
  EXPECT_EQ(spent(1).count("redone"), 0U);
}

TEST_F(JobCoreLedger, CallsNoStepDoneAgainOnceAPeerHasEndedWell) {
  Driver one(fixtures::job_of(1, 2));
  one.run_all();
  one.step(GangProgressed{.mesh = MeshId(0), .gang = GangId(0), .generation = one.crew(0).generation, .at = one.now});
  RankChanged ended{.host = HostId(0), .report = one.report_of(kFirst, RankPhase::kEnded, exited(0)), .step = 100};
  ended.ended_at = one.now;
  one.step(ended);
  one.now = one.now + Duration::seconds(5);
  one.step(DeadlinePassed{});
  EXPECT_EQ(spent_in(one.gang(0).time, TimeBin::kRedone, one.now), Duration::zero());
}

TEST_F(JobCoreLedger, CountsWhatPassedUntilAFailureWasSeenAsStill) {
  driver_.run_all();
  steps(1);
  pass(Duration::seconds(10));
  driver_.step(HostSilent{.host = HostId(0), .silence = Duration::seconds(3)});
  EXPECT_GE(of(spent(), "still"), 3'000);
  EXPECT_LE(of(spent(), "new"), 7'100);
  EXPECT_EQ(of(spent(1), "still"), 0);
}

TEST_F(JobCoreLedger, CountsALongPauseAsStill) {
  driver_.run_all();
  steps(1);
  pass(Duration::seconds(10));
  const GangPaused paused{.mesh = MeshId(0),
                          .gang = GangId(0),
                          .generation = driver_.crew(0).generation,
                          .from = driver_.now - Duration::seconds(4),
                          .to = driver_.now - Duration::seconds(1)};
  driver_.step(paused, Duration());
  EXPECT_EQ(of(spent(), "still"), 3'000);
  EXPECT_NEAR(of(spent(), "new"), 7'000, 8);
  driver_.step(paused, Duration());
  EXPECT_EQ(of(spent(), "still"), 3'000) << "it is known, and over";
  GangPaused wild = paused;
  wild.from = Instant();
  wild.to = driver_.now + Duration::seconds(1'000'000);
  driver_.step(wild, Duration());
  EXPECT_LE(driver_.gang(0).time.since, driver_.now);
  EXPECT_NEAR(static_cast<double>(all(0)), static_cast<double>(all(1)), 8.0);
}

// A host's clock says what it likes, and the parts add up.
TEST_F(JobCoreLedger, BelievesNoTimeBeforeTheStartOrAfterNow) {
  driver_.run_all();
  driver_.fail_gang(kFirst, killed(SIGSEGV), 100);
  driver_.start_again(0);
  const GangProgressed word{.mesh = MeshId(0), .gang = GangId(0), .generation = driver_.crew(0).generation, .step = 7};
  for (const auto& [step, at] : {std::pair(7U, Instant()), {101U, driver_.now + Duration::seconds(1'000'000)}}) {
    GangProgressed said = word;
    said.step = step;
    said.at = at;
    driver_.step(said);
    EXPECT_LE(driver_.gang(0).time.since, driver_.now);
  }
  pass(Duration::seconds(1));
  EXPECT_NEAR(static_cast<double>(all(0)), static_cast<double>(all(1)), 8.0);
  EXPECT_GE(std::stoll(driver_.details(EventKind::kGangCaughtUp).at("after_ms")), 0);
}

TEST_F(JobCoreLedger, EndsWithItsGang) {
  driver_.run_all();
  driver_.step(StopOrdered{.request = {.who = "test"}});
  pass(Duration::seconds(1));
  for (const std::uint32_t rank : {0U, 1U}) driver_.ended(rank, fixtures::killed_by_us(SIGTERM));
  EXPECT_GE(of(spent(), "stopping"), 1'000);
  const auto before = spent();
  pass(Duration::seconds(100));
  EXPECT_EQ(spent(), before);
}

}  // namespace
}  // namespace monarch
