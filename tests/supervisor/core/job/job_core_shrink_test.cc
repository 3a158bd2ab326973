// Gangs that are parked for want of a host, and return; and what their peers are told.

#include <gtest/gtest.h>

#include <csignal>

#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::exited;
using fixtures::job_that_recovers;

constexpr RankId kFirst{MeshId(0), Rank(0)};
constexpr RankId kSecond{MeshId(0), Rank(1)};

JobSpec job_that_shrinks(bool regrow = true, std::uint32_t min = 1) {
  JobSpec spec = job_that_recovers(2, 1, 4, 4);
  spec.meshes[0].supervision.shrink = ShrinkPolicy{.along = "host", .min = min, .regrow = regrow};
  spec.supervision = spec.meshes[0].supervision;
  spec.launch = LaunchLocal{.hosts = 2, .spares = 0};
  return spec;
}

void lose(Driver& driver, std::uint32_t host) {
  driver.step(HostSilent{.host = HostId(host), .silence = Duration::seconds(5), .grants_until = driver.now});
  driver.step(WorkerEnded{.host = HostId(host), .how = "killed by SIGKILL"});
}

std::size_t told_to_ranks(const Driver& driver, const std::string& word) {
  std::size_t n = 0;
  for (const Action& action : driver.actions_of<SendTell>()) {
    n += std::get<SendTell>(action).message.json.find(word) != std::string::npos ? 1U : 0U;
  }
  return n;
}

TEST(Shrink, ParksAGangWithoutAHostAndGoesOnWithTheOthers) {
  Driver driver(job_that_shrinks());
  driver.run_all();
  lose(driver, 0);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kParked);
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kRunning);
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning);
  EXPECT_EQ(driver.told(EventKind::kGangParked).size(), 1U);
}

TEST(Shrink, NamesSomeOfManyGangsThatWereParkedInTheVerdict) {
  JobSpec spec = job_that_recovers(12, 1, 4, 0);
  spec.meshes[0].supervision.shrink = ShrinkPolicy{.along = "host", .min = 1, .regrow = false};
  spec.launch = LaunchLocal{.hosts = 12, .spares = 0};
  Driver driver(spec);
  driver.run_all();
  for (std::uint32_t host = 0; host < 11; ++host) lose(driver, host);
  driver.report({MeshId(0), Rank(11)}, RankPhase::kEnded, exited(0));
  ASSERT_TRUE(driver.core.state().verdict.has_value());
  const std::string& reason = driver.core.state().verdict->reason;
  EXPECT_NE(reason.find("trainer gang 7 and 3 more"), std::string::npos) << reason;
  EXPECT_EQ(reason.find("gang 8"), std::string::npos) << reason;
}

TEST(Shrink, ReturnsWhenItsHostDoes) {
  Driver driver(job_that_shrinks());
  driver.run_all();
  lose(driver, 0);
  driver.step(DeadlinePassed{}, driver.host(0).cold_at - driver.now);  // the host may be launched again
  EXPECT_EQ(driver.host(0).phase, HostPhase::kLaunching);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kParked);
  driver.join(0);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
  EXPECT_EQ(driver.crew(0).generation.counter, 2U);
  driver.start_again(0);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
  EXPECT_EQ(told_to_ranks(driver, "peer_back"), 1U);
  EXPECT_TRUE(driver.core.state().reallocations.empty());
}

TEST(Shrink, StaysParkedWhereItIsNotToRegrow) {
  Driver driver(job_that_shrinks(false));
  driver.run_all();
  lose(driver, 0);
  while (driver.core.next_deadline() != Instant::never()) driver.pass_deadline();
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kParked);
}

TEST(Shrink, TakesNoHostAwayFromAGangThatRuns) {
  JobSpec spec = job_that_recovers(1, 2, 4, 0);
  spec.meshes[0].gang = {.scope = GangScope::kEach};
  spec.meshes[0].supervision.shrink = ShrinkPolicy{.along = "gpu", .min = 1, .regrow = true};
  spec.launch = LaunchLocal{.hosts = 2, .spares = 1};
  Driver driver(spec);
  driver.run_all();
  driver.join(1);
  driver.step(OperatorAsked{.wish = OperatorWish::kDrain, .hosts = {HostId(0)}, .who = "alice"});
  driver.fail_gang(kFirst, exited(1));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kParked);
  EXPECT_EQ(driver.core.placement().host_of(kSecond), HostId(0));
  EXPECT_TRUE(state_parts::is_granted(driver.core, {kSecond, driver.crew(1).generation})) << "its lease goes on";
  driver.report(kSecond, RankPhase::kEnded, exited(0));
  EXPECT_EQ(driver.core.placement().host_of(kFirst), HostId(1));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving) << "it returns once nothing lives on its host";
}

TEST(Shrink, NeverGoesBelowItsMinimum) {
  Driver driver(job_that_shrinks(true, 2));
  driver.run_all();
  lose(driver, 0);
  ASSERT_TRUE(driver.core.state().verdict.has_value());
  EXPECT_EQ(driver.core.state().verdict->exit_code, 92);
  EXPECT_EQ(driver.core.state().verdict->cause.host, "v1");
}

TEST(Shrink, SucceedsWhenAllThatIsNotParkedIsDoneAndNamesWhatWas) {
  Driver driver(job_that_shrinks(false));
  driver.run_all();
  lose(driver, 0);
  driver.report(kSecond, RankPhase::kEnded, exited(0));
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr);
  EXPECT_EQ(driver.verdict()->exit_code, 0);
  EXPECT_EQ(driver.verdict()->reason, "every rank ended with exit code 0; parked: trainer gang 0");
}

TEST(Shrink, IsStoppedLikeAnyOther) {
  Driver driver(job_that_shrinks());
  driver.run_all();
  lose(driver, 0);
  driver.step(StopOrdered{.request = {.who = "test"}});
  driver.report(kSecond, RankPhase::kEnded, fixtures::killed_by_us(SIGTERM));
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr);
  EXPECT_EQ(driver.verdict()->exit_code, 143);
}

TEST(Peers, AreToldAndSignalledWhenAGangFailsAndToldWhenItIsBack) {
  JobSpec spec = job_that_recovers(2, 1, 4);
  spec.meshes[0].supervision.on_peer_lost = SIGUSR1;
  Driver driver(spec);
  driver.run_all();
  driver.fail_gang(kFirst, exited(1));
  EXPECT_EQ(told_to_ranks(driver, "peer_lost"), 1U);
  const auto signals = driver.actions_of<SendSignal>();
  ASSERT_EQ(signals.size(), 1U);
  const auto& sent = std::get<SendSignal>(signals[0]);
  EXPECT_EQ(sent.host, HostId(1));
  EXPECT_EQ(sent.message.ranks, std::vector<RankId>{kSecond});
  EXPECT_EQ(sent.message.number, SIGUSR1);
  EXPECT_EQ(told_to_ranks(driver, "peer_back"), 0U);
  driver.start_again(0);
  EXPECT_EQ(told_to_ranks(driver, "peer_back"), 1U);
}

}  // namespace
}  // namespace monarch
