// Hosts that are left on evidence about them alone, while something of the job is still on its way there.

#include <gtest/gtest.h>

#include <csignal>

#include "supervisor/core/job/operator_request.h"
#include "supervisor/launch/local/local_spec.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::job_that_recovers;
using fixtures::killed;
using fixtures::killed_by_us;
using fixtures::mesh_of;

constexpr RankId kTrainer{MeshId(0), Rank(0)};
constexpr RankId kOther{MeshId(0), Rank(1)};
constexpr RankId kEvaluator{MeshId(1), Rank(0)};

// Two meshes on one host, and a spare.
JobSpec job_with_a_neighbour() {
  JobSpec spec = job_that_recovers(1, 2, 4, 4);
  MeshSpec evaluator = mesh_of("evaluator", {{"host", 1}, {"gpu", 1}}, 1);
  evaluator.like = MeshId(0);
  evaluator.supervision = spec.meshes[0].supervision;
  spec.meshes.push_back(std::move(evaluator));
  spec.launch = LaunchLocal{.hosts = 2, .spares = 1};
  return spec;
}

// The evaluator waits for ports, and the host is left for what befalls a trainer; the other trainer is still being
// stopped.
struct Doubtful : Driver {
  // Its host was lost so often before.
  explicit Doubtful(std::size_t losses = 0) : Driver(job_with_a_neighbour()) {
    begin();
    join(0);
    join(1);
    give_ports();
    for (const RankId& id : {kTrainer, kOther, kEvaluator}) report(id, RankPhase::kRunning);
    JobState state = core.state();
    state_parts::host(state, HostId(0)).lost_at.assign(losses, now);
    succeed(job_with_a_neighbour(), state);
    fail_gang(kEvaluator, killed(SIGBUS));
    EXPECT_EQ(gang(0, 1).phase, GangPhase::kReserving);
    report(kTrainer, RankPhase::kEnded, killed(SIGBUS));
    pass_deadline();
    EXPECT_EQ(told(EventKind::kHostQuarantined).size(), 1U);
    EXPECT_TRUE(lives(member(1).stage));
  }
};

TEST(Quarantine, KeepsOutAGangWhosePortsWereAskedForBeforeIt) {
  Doubtful driver;
  const std::size_t started = driver.actions_of<SendStart>().size();
  driver.give_ports();  // they were on their way
  EXPECT_EQ(driver.actions_of<SendStart>().size(), started) << "nothing new starts there";
  driver.report(kOther, RankPhase::kEnded, killed_by_us(SIGKILL));
  EXPECT_EQ(driver.core.placement().host_of(kEvaluator), HostId(1));
  driver.give_ports();
  EXPECT_EQ(driver.gang(0, 1).phase, GangPhase::kStarting);
}

TEST(Distrust, GivesUpWhateverRunsThereAndFencesItsLeases) {
  JobSpec spec = job_that_recovers(2, 1, 4, 4);
  spec.launch = LaunchLocal{.hosts = 3, .spares = 1};
  Driver driver(spec);
  driver.run_all();
  driver.join(2);
  const Instant fence = driver.now + Duration::seconds(30);
  driver.step(HostDistrusted{.host = HostId(0), .why = "it lies", .grants_until = fence});
  EXPECT_EQ(driver.told(EventKind::kHostQuarantined), std::vector<std::string>{"v1: it lies: it is left for good"});
  const HostState& left = driver.host(0);
  EXPECT_EQ(left.standing, HostStanding::kQuarantined);
  EXPECT_EQ(left.phase, HostPhase::kDestroying);
  EXPECT_EQ(std::get<DestroyWorker>(driver.actions_of<DestroyWorker>().back()).host, HostId(0));
  EXPECT_EQ(driver.core.placement().host_of(kTrainer), HostId(2));
  EXPECT_TRUE(lives(driver.member(0).stage) == false);
  EXPECT_EQ(left.fence, fence) << "what was granted there counts until then";
  // Once, whatever it says.
  driver.step(HostDistrusted{.host = HostId(0), .why = "it lies", .grants_until = fence});
  EXPECT_EQ(driver.told(EventKind::kHostQuarantined).size(), 1U);
}

// Found by monarch-sim: it was said to be of use again, and never was.
TEST(Quarantine, IsForgivenAlsoWhereTheWorkerHasEndedMeanwhile) {
  Doubtful driver;
  driver.report(kOther, RankPhase::kEnded, killed_by_us(SIGKILL));
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"}, Duration::seconds(1));
  const HostState& left = driver.host(0);
  ASSERT_EQ(left.standing, HostStanding::kQuarantined);
  ASSERT_EQ(left.phase, HostPhase::kEnded);
  driver.step(DeadlinePassed{}, Duration::seconds(1'000));
  EXPECT_EQ(left.phase, HostPhase::kEnded) << "for good, until somebody says otherwise";
  const auto asked =
      operator_plan(driver.core, {.wish = OperatorWish::kRetry, .ranks = {kTrainer}, .who = "alice"}, driver.now);
  ASSERT_TRUE(asked.ok()) << asked.error().message;
  driver.step(asked->event);
  EXPECT_EQ(left.standing, HostStanding::kGood);
  EXPECT_EQ(left.phase, HostPhase::kLaunching) << "as the spare that is missing";
}

// One gang on each of so many hosts, and so many spares.
JobSpec gangs_with_spares(std::uint32_t gangs, std::uint32_t spares) {
  JobSpec spec = job_that_recovers(gangs, 1, 4, 16);
  spec.launch = LaunchLocal{.hosts = gangs + spares, .spares = spares};
  return spec;
}

struct Lemons : Driver {
  explicit Lemons(std::uint32_t spares) : Lemons(gangs_with_spares(1, spares)) {}
  explicit Lemons(JobSpec spec) : Driver(std::move(spec)) {
    run_all();
    for (std::uint32_t i = 1; i < core.hosts().size(); ++i) join(i);
  }
  // Its worker ends by itself, its time passes, it is launched and calls again: until it was lost so often.
  void lose(std::uint32_t id, int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(host(id).phase, HostPhase::kJoined);
      step(WorkerEnded{.host = HostId(id), .how = "killed by SIGKILL"}, Duration::seconds(1));
      const bool returns = host(id).phase == HostPhase::kEnded && host(id).cold_at != Instant::never();
      if (returns) step(DeadlinePassed{}, Duration::seconds(100));
      if (host(id).phase == HostPhase::kLaunching) join(id);
    }
  }
};

TEST(Lemon, IsLeftWithItsThirdLoss) {
  Lemons driver(2);
  driver.lose(2, 2);
  EXPECT_EQ(driver.host(2).standing, HostStanding::kGood);
  EXPECT_TRUE(driver.told(EventKind::kHostQuarantined).empty());
  driver.lose(2, 1);
  EXPECT_EQ(driver.host(2).standing, HostStanding::kQuarantined);
  ASSERT_EQ(driver.told(EventKind::kHostQuarantined).size(), 1U);
  EXPECT_EQ(driver.told(EventKind::kHostQuarantined)[0], "v3: lost 3 times within 1h: it is left while others suffice");
  driver.step(DeadlinePassed{}, Duration::seconds(10'000));
  EXPECT_EQ(driver.host(2).phase, HostPhase::kEnded);
}

TEST(Lemon, IsUsedAgainRatherThanNothing) {
  Lemons driver(1);
  driver.lose(1, 3);
  ASSERT_EQ(driver.host(1).standing, HostStanding::kQuarantined);
  driver.step(HostDoubted{.host = HostId(0), .silence = Duration::seconds(2)});
  EXPECT_EQ(driver.host(1).standing, HostStanding::kQuarantined) << "nothing is lost yet";
  driver.step(HostSilent{.host = HostId(0), .silence = Duration::seconds(5), .grants_until = driver.now});
  EXPECT_EQ(driver.host(1).standing, HostStanding::kGood);
  ASSERT_EQ(driver.told(EventKind::kHostRecalled).size(), 1U);
  EXPECT_EQ(driver.told(EventKind::kHostRecalled)[0], "v2: may be used again, for the job has too few others");
  driver.pass_deadline();
  EXPECT_EQ(driver.host(1).phase, HostPhase::kLaunching);
}

// Nobody has proven that what ran there has ended.
TEST(Lemon, IsUsedAgainOnlyOnceWhatMayLiveThereHasEnded) {
  JobSpec spec = gangs_with_spares(1, 1);
  spec.launch = LaunchSsh{.hosts = {{.name = "a"}, {.name = "b"}}, .spares = 1};
  Lemons driver(std::move(spec));
  driver.lose(1, 2);
  driver.step(HostSilent{.host = HostId(1), .silence = Duration::seconds(5), .grants_until = driver.now});
  driver.step(DeadlinePassed{}, Duration::seconds(60));  // and the launcher says nothing of it
  ASSERT_EQ(driver.host(1).phase, HostPhase::kLost);
  ASSERT_EQ(driver.host(1).standing, HostStanding::kQuarantined);
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  EXPECT_EQ(driver.host(1).standing, HostStanding::kGood);
  EXPECT_GE(driver.host(1).cold_at - driver.now, driver.core.spec().supervision.orphan_ttl);
}

// It had been lost often enough, too, while no other could take its place; it runs, and what it was left for is for
// good.
TEST(Lemon, IsNoHostThatWasLeftForTheDeathsOfRanks) {
  Doubtful driver(3);
  ASSERT_EQ(driver.host(0).standing, HostStanding::kQuarantined);
  EXPECT_TRUE(driver.host(0).lost_at.empty());
  driver.step(HostSilent{.host = HostId(1), .silence = Duration::seconds(5), .grants_until = driver.now});
  EXPECT_TRUE(driver.told(EventKind::kHostRecalled).empty());
  EXPECT_EQ(driver.host(0).standing, HostStanding::kQuarantined);
}

TEST(Lemon, IsLaunchedAgainWhereTheJobHasNoOther) {
  Lemons driver(0);
  driver.lose(0, 4);
  EXPECT_EQ(driver.host(0).losses, 4U);
  EXPECT_EQ(driver.host(0).standing, HostStanding::kGood);
}

TEST(Lemon, IsLaunchedAgainWhereTheOtherIsSuspected) {
  Lemons driver(1);
  driver.lose(1, 2);
  driver.step(HostDoubted{.host = HostId(0), .silence = Duration::seconds(2)});
  driver.lose(1, 1);
  EXPECT_EQ(driver.host(1).standing, HostStanding::kGood);
}

TEST(Lemon, IsOneByLossesWithinTheWindowAlone) {
  Lemons driver(2);
  driver.lose(2, 2);
  driver.step(DeadlinePassed{}, Duration::seconds(4'000));
  driver.lose(2, 1);
  EXPECT_EQ(driver.host(2).standing, HostStanding::kGood);
  EXPECT_EQ(driver.host(2).lost_at.size(), 1U);
}

// What fails to start is tried again later and later, and was never of use to be missed.
TEST(Lemon, IsNoHostThatDoesNotStart) {
  Lemons driver(2);
  driver.lose(2, 1);
  for (int i = 0; i < 4; ++i) {
    driver.step(WorkerEnded{.host = HostId(2), .how = "exit code 1"}, Duration::seconds(1));
    driver.step(DeadlinePassed{}, Duration::seconds(601));
    ASSERT_EQ(driver.host(2).phase, HostPhase::kLaunching);
  }
  EXPECT_EQ(driver.host(2).standing, HostStanding::kGood);
}

}  // namespace
}  // namespace monarch
