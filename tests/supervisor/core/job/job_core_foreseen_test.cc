// JobCore: an end that is foreseen. Ranks are told, nothing is started again, and the job has ended in order before.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::exited;
using fixtures::job_of;
using fixtures::job_that_recovers;
using fixtures::killed;

constexpr RankId kFirst{MeshId(0), Rank(0)};

EndForeseen preempted(const Driver& driver, Duration left) {
  return {.kind = ForeseenKind::kPreempted, .why = "Slurm preempts job 7", .by = driver.now + left};
}

EndForeseen preempted_at_an_unknown_time() { return {.why = "Slurm signals job 7"}; }

// Of the events that ranks were told, with the ranks they went to.
std::vector<std::string> told_ranks(const std::vector<Action>& actions) {
  std::vector<std::string> found;
  for (const Action& action : actions) {
    if (const auto* tell = std::get_if<SendTell>(&action)) found.push_back(tell->message.json);
  }
  return found;
}

// Two gangs that may be started again, each on a host of its own.
JobSpec two_gangs(Duration grace) {
  JobSpec spec = job_that_recovers(2, 1, 4, 4);
  spec.meshes[0].stop.grace = grace;
  return spec;
}

TEST(ForeseenEnd, IsToldToRanksAtOnceAndStopsTheJobEarlyEnough) {
  Driver driver(two_gangs(Duration::seconds(30)));
  driver.run_all();
  const Instant by = driver.now + Duration::seconds(120);
  const auto actions = driver.step({EndForeseen{.why = "Slurm preempts job 7", .by = by}}, Duration::zero());
  const auto words = told_ranks(actions);
  ASSERT_EQ(words.size(), 4U) << "two for each host";
  EXPECT_EQ(words[0], R"({"v":1,"event":"preempted","left_milliseconds":120000,"stop_milliseconds":83000,)"
                      R"("why":"Slurm preempts job 7"})");
  EXPECT_EQ(words[1], R"({"v":1,"event":"checkpoint_now"})");
  EXPECT_EQ(driver.count<SendStop>(actions), 0U);
  ASSERT_EQ(driver.told(EventKind::kJobPreempted).size(), 1U);
  EXPECT_EQ(driver.told(EventKind::kJobPreempted)[0],
            "Slurm preempts job 7, and ends what runs there in 2m: ranks are told to save, and are stopped in 1m 23s");
  EXPECT_EQ(driver.core.next_deadline(), by - Duration::seconds(37)) << "30 s of grace, 2 s for KILL, 5 s for us";
  const auto stopping = driver.pass_deadline();
  EXPECT_EQ(driver.count<SendStop>(stopping), 2U);
  for (const std::uint32_t rank : {0U, 1U}) driver.ended(rank, fixtures::killed_by_us(15));
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr);
  EXPECT_EQ(driver.verdict()->exit_code, 92);
  EXPECT_EQ(driver.verdict()->reason, "Slurm preempts job 7");
}

TEST(ForeseenEnd, StopsAtOnceAndCutsTheGraceWhereLittleTimeIsLeft) {
  Driver driver(two_gangs(Duration::seconds(30)));
  driver.run_all();
  const auto actions = driver.step(preempted(driver, Duration::milliseconds(20'001)));
  ASSERT_EQ(driver.count<SendStop>(actions), 2U);
  for (const Action& action : actions) {
    const auto* stop = std::get_if<SendStop>(&action);
    if (stop != nullptr) {
      EXPECT_EQ(stop->message.grace, Duration::seconds(15)) << "20 s but for the last 5";
    }
  }
  EXPECT_EQ(told_ranks(actions).size(), 6U) << "preempted, checkpoint_now and stopping";
}

TEST(ForeseenEnd, RestartsNothingAndSpendsNoBudgetWhateverEndsMeanwhile) {
  Driver driver(two_gangs(Duration::seconds(10)));
  driver.run_all();
  driver.step(preempted(driver, Duration::seconds(120)));
  const std::size_t started = driver.actions_of<SendStart>().size();
  driver.ended(0, killed(15));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kFailed);
  EXPECT_TRUE(driver.told(EventKind::kGangFailed).empty());
  ASSERT_EQ(driver.told(EventKind::kGangEnded).size(), 1U);
  EXPECT_EQ(driver.told(EventKind::kGangEnded)[0],
            "trainer: gang 0 has ended, and is not started again: Slurm preempts job 7");
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kRunning) << "it may save";
  driver.step(HostSilent{.host = HostId(1), .silence = Duration::seconds(5)});
  driver.step(WorkerEnded{.host = HostId(1), .how = "killed by SIGKILL"});
  EXPECT_EQ(driver.actions_of<SendStart>().size(), started);
  EXPECT_TRUE(driver.gang(0).failures.empty() && driver.gang(1).failures.empty());
  EXPECT_TRUE(driver.core.state().reallocations.empty());
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr);
  EXPECT_EQ(driver.verdict()->exit_code, 92);
}

TEST(ForeseenEnd, LeavesThePeersOfARankThatEndedTheirTime) {
  Driver driver(job_of(2, 1));
  driver.run_all();
  driver.step(preempted(driver, Duration::seconds(120)));
  const auto actions = driver.ended(0, killed(15));
  EXPECT_EQ(driver.count<SendStop>(actions), 0U);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
  driver.ended(1, exited(0));
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr) << "nothing runs: nothing is waited for";
  EXPECT_EQ(driver.verdict()->exit_code, 92);
  EXPECT_EQ(driver.verdict()->reason, "Slurm preempts job 7");
}

TEST(ForeseenEnd, IsNoneOfAJobThatIsDoneBefore) {
  Driver driver(job_of(2, 1));
  driver.run_all();
  driver.step(preempted(driver, Duration::seconds(120)));
  driver.ended(0, exited(0));
  driver.ended(1, exited(0));
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr);
  EXPECT_EQ(driver.verdict()->exit_code, 0);
}

TEST(ForeseenEnd, TakesAGangThatWasFailingAsEndedByIt) {
  Driver driver(two_gangs(Duration::seconds(10)));
  driver.run_all();
  JobSpec whole = job_of(2, 1);
  whole.meshes[0].supervision.restart = {.max = 4};
  Driver one(whole);
  one.run_all();
  one.ended(0, killed(15));
  ASSERT_EQ(one.gang(0).phase, GangPhase::kFailing);
  one.step(preempted_at_an_unknown_time());
  one.ended(1, fixtures::killed_by_us(9));
  EXPECT_EQ(one.gang(0).phase, GangPhase::kFailed);
  EXPECT_TRUE(one.told(EventKind::kGangFailed).empty());
  EXPECT_TRUE(one.gang(0).failures.empty());
}

TEST(ForeseenEnd, StartsNoGangThatWaitsForPortsOrForAnother) {
  JobSpec spec = two_gangs(Duration::seconds(10));
  Driver driver(spec);
  driver.begin();
  driver.join(0);
  driver.join(1);
  ASSERT_EQ(driver.gang(0).phase, GangPhase::kReserving);
  driver.step(preempted_at_an_unknown_time());
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kWaiting);
  driver.give_ports();
  EXPECT_TRUE(driver.actions_of<SendStart>().empty());
  driver.step(preempted(driver, Duration::seconds(120)));
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr) << "nothing runs: nothing is waited for";
  EXPECT_EQ(driver.verdict()->exit_code, 92);
}

TEST(ForeseenEnd, FreezesTheJobUntilItIsKnownWhen) {
  Driver driver(two_gangs(Duration::seconds(10)));
  driver.run_all();
  const auto actions = driver.step(preempted_at_an_unknown_time());
  EXPECT_TRUE(actions.empty()) << "what is to be told follows";
  driver.ended(0, killed(15));
  driver.ended(1, killed(15));
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning) << "who cancelled it may be told yet";
  driver.step(StopOrdered{.request = {.who = "Slurm, whose job 7 is over: CANCELLED"}});
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr);
  EXPECT_EQ(driver.verdict()->exit_code, 143);
}

TEST(ForeseenEnd, MayComeSoonerThanToldButNotLater) {
  Driver driver(two_gangs(Duration::seconds(10)));
  driver.run_all();
  driver.step(preempted(driver, Duration::seconds(120)));
  const Instant planned = driver.core.next_deadline();
  driver.step(preempted(driver, Duration::seconds(300)));
  EXPECT_EQ(driver.core.next_deadline(), planned);
  EXPECT_EQ(driver.told(EventKind::kJobPreempted).size(), 1U);
  driver.step(preempted(driver, Duration::seconds(60)));
  EXPECT_LT(driver.core.next_deadline(), planned);
  EXPECT_EQ(driver.told(EventKind::kJobPreempted).size(), 2U);
}

TEST(ForeseenEnd, GivesEachStageItsGrace) {
  JobSpec spec = job_of(1, 1);
  spec.meshes.push_back(fixtures::mesh_of("store", {{"gpu", 1}}, 1));
  spec.meshes[1].sidecar = true;
  spec.meshes[0].stop.grace = Duration::seconds(10);
  spec.meshes[1].stop.grace = Duration::seconds(20);
  Driver driver(spec);
  driver.begin();
  for (std::uint32_t i = 0; i < driver.core.spec().hosts_needed(); ++i) driver.join(i);
  driver.give_ports();
  driver.report({MeshId(1), Rank(0)}, RankPhase::kRunning);
  driver.give_ports();
  driver.report(kFirst, RankPhase::kRunning);
  const Instant by = driver.now + Duration::seconds(200);
  driver.step(EndForeseen{.why = "Slurm preempts job 7", .by = by}, Duration::zero());
  EXPECT_EQ(driver.core.next_deadline(), by - Duration::seconds(5 + 12 + 22));
}

TEST(ForeseenEnd, IsCalledByItsTimeLimit) {
  Driver driver(two_gangs(Duration::seconds(10)));
  driver.run_all();
  driver.step(EndForeseen{.kind = ForeseenKind::kTimeLimit,
                          .why = "the time limit of Slurm's job 7 is near",
                          .by = driver.now + Duration::seconds(60)});
  EXPECT_EQ(driver.told(EventKind::kJobExpiring).size(), 1U);
  EXPECT_TRUE(driver.told(EventKind::kJobPreempted).empty());
}

TEST(ForeseenEnd, IsPlannedByASupervisorThatComesBackBeforeItWasKnownWhen) {
  Driver driver(two_gangs(Duration::seconds(10)));
  driver.run_all();
  driver.step(preempted_at_an_unknown_time());
  driver.step(SupervisorReturned{.term = Term(2)});
  ASSERT_EQ(driver.told(EventKind::kJobPreempted).size(), 1U);
  EXPECT_LE(driver.core.next_deadline(), driver.now + Duration::seconds(30));
}

TEST(ForeseenEnd, LeavesAnOperatorsStopWhatItIs) {
  Driver driver(two_gangs(Duration::seconds(10)));
  driver.run_all();
  driver.step(preempted(driver, Duration::seconds(120)));
  driver.step(StopOrdered{.request = {.who = "monarch stop, pid 7"}});
  for (const std::uint32_t rank : {0U, 1U}) driver.ended(rank, fixtures::killed_by_us(15));
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr);
  EXPECT_EQ(driver.verdict()->exit_code, 143);
  EXPECT_EQ(driver.core.next_deadline(), Instant::never());
}

}  // namespace
}  // namespace monarch
