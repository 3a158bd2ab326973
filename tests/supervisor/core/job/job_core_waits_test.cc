// Every wait says, every 30 s, for whom it waits, since when, and what an operator can do; nothing of it decides
// anything.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::exited;
using fixtures::job_that_recovers;
using Lines = std::vector<std::string>;

constexpr RankId kFirst{MeshId(0), Rank(0)};

// Two gangs on v1, which an operator drains, and a spare, which takes nothing while one of them goes on there.
struct OnADrainedHost : Driver {
  static JobSpec spec() {
    JobSpec spec = job_that_recovers(1, 2, 4, 4);
    spec.meshes[0].gang = {.scope = GangScope::kEach};
    spec.launch = LaunchLocal{.hosts = 2, .spares = 1};
    return spec;
  }
  OnADrainedHost() : Driver(spec()) {
    run_all();
    join(1);
    step(OperatorAsked{.wish = OperatorWish::kDrain, .hosts = {HostId(0)}, .who = "alice"});
    fail_gang(kFirst, exited(1));
  }
  Lines reminders() const {
    Lines found;
    for (const std::string& message : told(EventKind::kGangWaiting)) {
      if (message.find("has waited") != std::string::npos) found.push_back(message);
    }
    return found;
  }
};

TEST(Waits, AreSaidAgainEveryThirtySeconds) {
  OnADrainedHost driver;
  EXPECT_TRUE(driver.reminders().empty());
  driver.step(DeadlinePassed{}, Duration::seconds(29));
  EXPECT_TRUE(driver.reminders().empty());
  driver.step(DeadlinePassed{}, driver.core.next_deadline() - driver.now);
  ASSERT_EQ(driver.reminders().size(), 1U);
  EXPECT_EQ(
      driver.reminders()[0],
      "trainer: gang 0 has waited 30s for v1 (drained, asked by alice; what else runs there has not ended); there is "
      "no deadline: "
      "`monarch undrain test-0001 v1` lets it be used again, `monarch drain test-0001 v1 --now` stops what runs there, "
      "`monarch stop test-0001` ends the job");
  EXPECT_EQ(driver.core.next_deadline() - driver.now, Duration::seconds(30));
  driver.pass_deadline();
  ASSERT_EQ(driver.reminders().size(), 2U);
  EXPECT_NE(driver.reminders()[1].find("gang 0 has waited 1m for v1"), std::string::npos) << driver.reminders()[1];
}

TEST(Waits, AreOverOnceItsHostMayBeUsedAgain) {
  OnADrainedHost driver;
  driver.pass_deadline();
  ASSERT_EQ(driver.reminders().size(), 1U);
  driver.step(OperatorAsked{.wish = OperatorWish::kUndrain, .hosts = {HostId(0)}, .who = "alice"});
  driver.start_again(0);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
  driver.step(DeadlinePassed{}, Duration::seconds(100));
  EXPECT_EQ(driver.reminders().size(), 1U);
}

TEST(Waits, GoOnToBeSaidByASupervisorThatComesBack) {
  OnADrainedHost driver;
  driver.step(SupervisorReturned{.term = Term(2), .boot_id = driver.core.state().boot_id});
  driver.step(DeadlinePassed{}, Duration::seconds(30));
  ASSERT_EQ(driver.reminders().size(), 1U);
}

TEST(Waits, OfAParkedGangThatWouldReturnAreSaid) {
  JobSpec spec = job_that_recovers(3, 1, 4, 0);
  spec.meshes[0].supervision.shrink = ShrinkPolicy{.along = "host", .min = 1, .regrow = true};
  spec.supervision = spec.meshes[0].supervision;
  Driver driver(spec);
  driver.run_all();
  driver.step(WorkerEnded{.host = HostId(0), .how = "exit code 1", .orderly = false});
  driver.step(DeadlinePassed{}, Duration::seconds(1));
  ASSERT_EQ(driver.gang(0).phase, GangPhase::kParked);
  driver.step(OperatorAsked{.wish = OperatorWish::kDrain, .hosts = {HostId(0)}, .who = "alice"});
  driver.step(DeadlinePassed{}, Duration::seconds(40));
  ASSERT_FALSE(driver.told(EventKind::kGangWaiting).empty());
  const std::string said = driver.told(EventKind::kGangWaiting).back();
  EXPECT_NE(said.find("trainer: gang 0 is parked, and has waited "), std::string::npos) << said;
  EXPECT_NE(said.find("for v1 ("), std::string::npos) << said;
  EXPECT_NE(said.find("drained, asked by alice"), std::string::npos) << said;
  EXPECT_NE(said.find("; there is no deadline: `monarch undrain test-0001 v1` lets it be used again"),
            std::string::npos)
      << said;
}

TEST(Waits, OfAHostThatMayBeLaunchedAgainSayWhen) {
  JobSpec spec = job_that_recovers(1, 1, 4, 4);
  Driver driver(spec);
  driver.run_all();
  driver.step(WorkerEnded{.host = HostId(0), .how = "exit code 1", .orderly = false});
  driver.step(DeadlinePassed{}, Duration::seconds(1));
  for (int i = 0; i < 3 && driver.core.state().phase == JobPhase::kRunning;
       ++i) {  // it fails again, and is tried later each time
    driver.step(WorkerLaunchFailed{.host = HostId(0),
                                   .failure = {.kind = LaunchFailureKind::kOther,
                                               .phase = "start",
                                               .elapsed = {},
                                               .message = "no",
                                               .words = {},
                                               .again = {}}});
    driver.step(WorkerEnded{.host = HostId(0), .how = "nothing is there", .orderly = true});
    while (driver.host(0).phase == HostPhase::kEnded) driver.pass_deadline();
  }
  const Lines said = driver.told(EventKind::kGangWaiting);
  const auto timed = std::find_if(said.begin(), said.end(), [](const std::string& message) {
    return message.find("has waited 30s for v1 (") != std::string::npos &&
           message.find("it may be launched again in ") != std::string::npos;
  });
  ASSERT_NE(timed, said.end());
  EXPECT_EQ(timed->find("no deadline"), std::string::npos) << *timed;
}

TEST(Waits, OfWhoIsLeftAloneOnPurposeAreSaid) {
  Driver driver(job_that_recovers(1, 2, 4, 4));
  driver.run_all();
  driver.step(HoldAsked{.wish = HoldWish::kHold, .ranks = {kFirst}, .who = "alice"});
  driver.pass_deadline();
  ASSERT_EQ(driver.told(EventKind::kRanksHeld).size(), 2U);
  EXPECT_EQ(
      driver.told(EventKind::kRanksHeld)[1],
      "1 rank has been left alone for 30s, as alice asked: trainer/0; there is no deadline, and no hang is seen there: "
      "`monarch hold test-0001 --release`, or `monarch signal test-0001 CONT` where it is stopped");
  driver.step(HoldAsked{.wish = HoldWish::kRelease, .ranks = {kFirst}, .who = "alice"});
  EXPECT_EQ(driver.core.next_deadline(), Instant::never());
}

}  // namespace
}  // namespace monarch
