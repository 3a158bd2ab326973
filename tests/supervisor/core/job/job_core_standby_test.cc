// Standby gangs wait on spares without a place; one takes the place of a gang that is started again, and none of them
// decides anything.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "supervisor/core/job/status.h"
#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/core/fixtures.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::exited;
using fixtures::killed;
using fixtures::killed_by_us;
using Lines = std::vector<std::string>;

constexpr MeshId kStandbyMesh{2};  // of the first mesh of one

// Two gangs of two ranks, each on a host of its own, and spares with standby gangs.
JobSpec job_with_standby(std::uint32_t spares, std::uint32_t standby) {
  JobSpec spec = fixtures::job_that_recovers(2, 2, 4, 4);
  spec.launch = LaunchLocal{.spares = spares};
  spec.meshes[0].standby_gangs = standby;
  spec.meshes[0].env = {{"PLAIN", "yes"}, {"PLACE", "$(self.rank)"}};
  return spec;
}

struct Standing : Driver {
  Standing(std::uint32_t spares, std::uint32_t standby) : Driver(job_with_standby(spares, standby)) {
    begin();
    for (std::uint32_t i = 0; i < core.hosts().size(); ++i) join(i);
    give_ports();
    for (std::uint32_t r = 0; r < 4; ++r) report({MeshId(0), Rank(r)}, RankPhase::kRunning);
  }

  RankReport of_standby(std::uint32_t rank, RankPhase phase, bool at_gate, RankEnd end = {}) const {
    RankReport report;
    report.process.rank = {kStandbyMesh, Rank(rank)};
    report.process.generation = standby(rank / 2).generation;
    report.phase = phase;
    report.pid = static_cast<std::int32_t>(500 + rank);
    report.end = std::move(end);
    report.at_gate = at_gate;
    report.output_complete = phase == RankPhase::kEnded;
    return report;
  }

  void stands(std::uint32_t rank, RankPhase phase, bool at_gate, RankEnd end = {}) {
    const std::uint32_t s = rank / 2;
    if (standby(s).hosts.empty()) return;
    step(RankChanged{
        .host = standby(s).hosts[0], .report = of_standby(rank, phase, at_gate, std::move(end)), .ended_at = now});
  }

  void reach_gate(std::uint32_t s = 0) {
    for (std::uint32_t r = 2 * s; r < 2 * s + 2; ++r) stands(r, RankPhase::kRunning, true);
  }

  // STARTs and STOPs, from number `from` on of all actions: "start 0 v1", the mesh and the host.
  Lines orders(std::size_t from = 0) const {
    Lines found;
    for (std::size_t i = from; i < all.size(); ++i) {
      if (const auto* start = std::get_if<SendStart>(&all[i])) {
        found.push_back(text("start ", start->message.mesh.value(), " ", core.hosts()[start->host.value()].name));
      }
      if (const auto* stop = std::get_if<SendStop>(&all[i])) {
        found.push_back(text("stop ", stop->message.ranks[0].mesh.value(), " ", core.hosts()[stop->host.value()].name));
      }
    }
    return found;
  }

  const Start& last_start() const {
    const Start* last = nullptr;
    for (const Action& action : all) {
      if (const auto* start = std::get_if<SendStart>(&action)) last = &start->message;
    }
    return *last;
  }
};

TEST(StandbyGangs, AreStartedOnSparesWithoutAPlace) {
  Standing driver(1, 1);
  const auto starts = driver.actions_of<SendStart>();
  const auto sent = std::find_if(starts.begin(), starts.end(), [](const Action& action) {
    return std::get<SendStart>(action).message.mesh == kStandbyMesh;
  });
  ASSERT_NE(sent, starts.end());
  const Start& message = std::get<SendStart>(*sent).message;
  EXPECT_TRUE(message.standby);
  EXPECT_EQ(message.mesh_name, "standby-trainer");
  ASSERT_EQ(message.ranks.size(), 2U);
  const auto& env = message.ranks[0].env;
  EXPECT_EQ(env.at("MONARCH_STANDBY"), "0");
  EXPECT_EQ(env.at("PLAIN"), "yes");
  for (const char* name : {"RANK", "MONARCH_RANK", "MASTER_PORT", "PLACE", "MONARCH_GENERATION"}) {
    EXPECT_FALSE(env.contains(name)) << name;
  }
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning);
}

TEST(StandbyGangs, AreReadyOnceAllTheirRanksAreAtTheirGates) {
  Standing driver(1, 1);
  driver.stands(0, RankPhase::kRunning, true);
  driver.stands(1, RankPhase::kRunning, false);
  EXPECT_EQ(driver.standby().phase, CrewPhase::kStarting);
  driver.stands(1, RankPhase::kRunning, true);
  EXPECT_EQ(driver.standby().phase, CrewPhase::kRunning);
  EXPECT_EQ(driver.told(EventKind::kStandbyReady), Lines{"trainer: standby 0 is at its gate"});
  const JobStatus status = status_of(driver.core, "j", driver.now);
  ASSERT_EQ(status.meshes[0].standby.size(), 1U);
  EXPECT_EQ(status.meshes[0].standby[0].phase, "ready");
  EXPECT_EQ(status.meshes[0].standby[0].hosts, Lines{"v3"});
}

TEST(StandbyGangs, TakeThePlaceOfAGangThatFails) {
  Standing driver(1, 1);
  driver.reach_gate();
  driver.fail_gang({MeshId(0), Rank(2)}, killed(9));
  EXPECT_EQ(driver.core.state().slots, (std::vector<HostId>{HostId(0), HostId(2)}));
  EXPECT_TRUE(driver.is_given());
  driver.give_ports();
  const Start& start = driver.last_start();
  EXPECT_EQ(start.mesh, MeshId(0));
  EXPECT_EQ(start.gang, GangId(1));
  ASSERT_EQ(start.ranks.size(), 2U);
  EXPECT_EQ(start.ranks[0].standby, (Incarnation{{kStandbyMesh, Rank(0)}, driver.standby().generation}));
  EXPECT_EQ(start.ranks[1].standby, (Incarnation{{kStandbyMesh, Rank(1)}, driver.standby().generation}));
  EXPECT_EQ(start.ranks[0].env.at("MONARCH_RANK"), "2");
  // Until the host says that they are the gang's, they keep what they have.
  EXPECT_TRUE(state_parts::is_granted(driver.core, {{kStandbyMesh, Rank(0)}, driver.standby().generation}));
  EXPECT_TRUE(state_parts::is_granted(driver.core, {{MeshId(0), Rank(2)}, driver.crew(1).generation}));
  for (const std::uint32_t rank : {2U, 3U}) driver.report({MeshId(0), Rank(rank)}, RankPhase::kRunning);
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kRunning);
  EXPECT_EQ(driver.gang(1).restarts, 1U);
  // The host that the gang left is a spare, and another standby is started there.
  EXPECT_EQ(driver.standby().phase, CrewPhase::kStarting);
  EXPECT_EQ(driver.standby().hosts, std::vector<HostId>{HostId(1)});
  EXPECT_EQ(driver.standby().generation.counter, 2U);
}

TEST(StandbyGangs, TakeThePlaceOfAGangWhoseHostIsLost) {
  Standing driver(1, 1);
  driver.reach_gate();
  driver.step(WorkerEnded{.host = HostId(1), .how = "exit code 1", .orderly = false});
  driver.step(DeadlinePassed{}, Duration::seconds(1));
  EXPECT_EQ(driver.core.state().slots, (std::vector<HostId>{HostId(0), HostId(2)}));
  EXPECT_EQ(driver.core.state().reallocations.size(), 1U);
  driver.give_ports();
  EXPECT_TRUE(driver.last_start().ranks[0].standby.has_value());
}

// I3: what ran on a host that fell silent may act until its lease has ended.
TEST(StandbyGangs, WaitUntilNothingOfTheGangMayAct) {
  Standing driver(1, 1);
  driver.reach_gate();
  const std::size_t before = driver.all.size();
  driver.step(HostSilent{
      .host = HostId(1), .silence = Duration::seconds(5), .grants_until = driver.now + Duration::seconds(7)});
  driver.step(DeadlinePassed{}, Duration::seconds(1));
  EXPECT_EQ(driver.actions_of<SendReserve>().size(), 2U);  // those of the first generations
  driver.step(DeadlinePassed{}, Duration::seconds(7));
  driver.give_ports();
  const Lines orders = driver.orders(before);
  EXPECT_EQ(std::count(orders.begin(), orders.end(), "start 0 v3"), 1);
  EXPECT_TRUE(driver.last_start().ranks[0].standby.has_value());
}

// Found by monarch-sim: its gang was started beside what had not ended of it.
TEST(StandbyGangs, ThatFailOnceTheyHaveAPlaceEndBeforeTheirGangStarts) {
  Standing driver(1, 1);
  driver.reach_gate();
  driver.fail_gang({MeshId(0), Rank(2)}, killed(9));
  ASSERT_TRUE(driver.is_given());
  ASSERT_EQ(driver.gang(1).phase, GangPhase::kReserving);
  driver.stands(0, RankPhase::kEnded, true, exited(3));
  const std::size_t started = driver.actions_of<SendStart>().size();
  driver.give_ports();
  EXPECT_EQ(driver.actions_of<SendStart>().size(), started) << "the other rank of it is still there";
  driver.stands(1, RankPhase::kEnded, true, killed_by_us(15));
  driver.give_ports();
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kStarting);
}

// Found by monarch-sim: nobody ended it, and the gang was started beside it.
TEST(StandbyGangs, AreEndedWhereTheirRankWasStoppedBeforeItTookThem) {
  Standing driver(1, 1);
  driver.reach_gate();
  driver.fail_gang({MeshId(0), Rank(2)}, killed(9));
  driver.give_ports();
  ASSERT_EQ(driver.gang(1).phase, GangPhase::kStarting);
  driver.report({MeshId(0), Rank(2)}, RankPhase::kRunning);
  const std::size_t before = driver.all.size();
  driver.report({MeshId(0), Rank(2)}, RankPhase::kEnded, exited(1));
  EXPECT_TRUE(driver.is_given()) << "whether the other has become anything is not known";
  RankReport never =
      driver.report_of({MeshId(0), Rank(3)}, RankPhase::kEnded,
                       {.kind = EndKind::kNotExecuted, .value = ECANCELED, .detail = {}, .after_our_signal = true});
  never.pid = 0;
  driver.step(RankChanged{.host = HostId(2), .report = never, .ended_at = driver.now, .uncertainty = {}});
  EXPECT_EQ(driver.standby().phase, CrewPhase::kStopping);
  EXPECT_EQ(driver.orders(before).back(), "stop 2 v3");
  ASSERT_EQ(driver.gang(1).phase, GangPhase::kWaiting);
  driver.step(DeadlinePassed{}, Duration::seconds(4));
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kWaiting) << "it is still there";
  driver.stands(1, RankPhase::kEnded, true, killed_by_us(15));
  driver.give_ports();
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kStarting);
}

TEST(StandbyGangs, ThatAreNotAtTheirGatesTakeNothing) {
  Standing driver(1, 1);
  driver.fail_gang({MeshId(0), Rank(2)}, killed(9));
  EXPECT_EQ(driver.core.state().slots, (std::vector<HostId>{HostId(0), HostId(1)}));
  EXPECT_EQ(driver.standby().phase, CrewPhase::kStarting);
}

TEST(StandbyGangs, GiveUpTheirHostWhereItIsNeeded) {
  Standing driver(1, 1);
  driver.stands(0, RankPhase::kRunning, false);
  driver.step(WorkerEnded{.host = HostId(1), .how = "exit code 1", .orderly = false});
  driver.step(DeadlinePassed{}, Duration::seconds(1));
  EXPECT_EQ(driver.core.state().slots[1], HostId(2));
  EXPECT_EQ(driver.orders().back(), "stop 2 v3");
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kWaiting);
  for (const std::uint32_t rank : {0U, 1U}) driver.stands(rank, RankPhase::kEnded, false, killed_by_us(15));
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kReserving);
}

TEST(StandbyGangs, ThatFailAreStartedAgainLaterAndLater) {
  Standing driver(1, 1);
  for (const std::int64_t wait : {1, 2, 4}) {
    driver.stands(0, RankPhase::kEnded, false, exited(1));
    driver.stands(1, RankPhase::kEnded, false, killed_by_us(15));
    EXPECT_EQ(driver.standby().phase, CrewPhase::kOver);
    driver.step(DeadlinePassed{}, Duration::seconds(wait) - Duration::milliseconds(500));
    EXPECT_EQ(driver.standby().phase, CrewPhase::kOver);
    driver.step(DeadlinePassed{}, Duration::milliseconds(500));
    EXPECT_EQ(driver.standby().phase, CrewPhase::kStarting);
  }
  EXPECT_EQ(driver.told(EventKind::kStandbyFailed).size(), 3U);
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning);
}

TEST(StandbyGangs, ThatNeverReachTheirGatesAreTold) {
  Standing driver(1, 1);
  driver.step(DeadlinePassed{}, driver.core.spec().start_timeout + Duration::seconds(1));
  ASSERT_EQ(driver.told(EventKind::kStandbyLate).size(), 1U);
  EXPECT_EQ(driver.standby().phase, CrewPhase::kStarting);
}

TEST(StandbyGangs, EndWithTheJob) {
  Standing driver(1, 1);
  driver.reach_gate();
  for (std::uint32_t rank = 0; rank < 4; ++rank) driver.ended(rank, exited(0));
  EXPECT_EQ(driver.core.state().phase, JobPhase::kStopping);
  EXPECT_EQ(driver.orders().back(), "stop 2 v3");
  for (const std::uint32_t rank : {0U, 1U}) driver.stands(rank, RankPhase::kEnded, true, killed_by_us(15));
  EXPECT_EQ(driver.core.state().phase, JobPhase::kShuttingDown);
}

TEST(StandbyGangs, AreTakenOverAsTheyAreByASupervisorThatComesBack) {
  Standing driver(1, 1);
  driver.reach_gate();
  const std::size_t before = driver.all.size();
  driver.step(SupervisorReturned{.term = Term(2)});
  EXPECT_TRUE(driver.core
                  .outstanding(HostId(2), {driver.of_standby(0, RankPhase::kRunning, true),
                                           driver.of_standby(1, RankPhase::kRunning, true)})
                  .empty());
  EXPECT_TRUE(driver.orders(before).empty());
  EXPECT_EQ(driver.standby().phase, CrewPhase::kRunning);
}

// As a standby it has no end; what it wrote as one may still be on its way when the job ends.
TEST(StandbyGangs, AreWaitedForUntilTheirOutputIsComplete) {
  Standing driver(1, 1);
  driver.reach_gate();
  driver.step(StopOrdered{.request = {.who = "somebody"}});
  for (const std::uint32_t rank : {0U, 1U, 2U, 3U}) driver.ended(rank, killed_by_us(15));
  for (const std::uint32_t rank : {0U, 1U}) {
    RankReport report = driver.of_standby(rank, RankPhase::kEnded, true, killed_by_us(15));
    report.output_complete = false;
    driver.step(RankChanged{.host = HostId(2), .report = report, .ended_at = driver.now});
  }
  EXPECT_EQ(driver.core.state().phase, JobPhase::kDraining);
  driver.stands(0, RankPhase::kEnded, true, killed_by_us(15));
  EXPECT_EQ(driver.core.state().phase, JobPhase::kDraining);
  driver.stands(1, RankPhase::kEnded, true, killed_by_us(15));
  EXPECT_EQ(driver.core.state().phase, JobPhase::kShuttingDown);
}

TEST(StandbyGangs, WhoseLastOutputDoesNotComeAreNamed) {
  Standing driver(1, 1);
  driver.reach_gate();
  driver.step(StopOrdered{.request = {.who = "somebody"}});
  for (const std::uint32_t rank : {0U, 1U, 2U, 3U}) driver.ended(rank, killed_by_us(15));
  driver.stands(0, RankPhase::kEnded, true, killed_by_us(15));
  RankReport report = driver.of_standby(1, RankPhase::kEnded, true, killed_by_us(15));
  report.output_complete = false;
  driver.step(RankChanged{.host = HostId(2), .report = report, .ended_at = driver.now});
  driver.pass_deadline();
  ASSERT_EQ(driver.told(EventKind::kOutputIncomplete).size(), 1U);
  EXPECT_NE(driver.told(EventKind::kOutputIncomplete)[0].find("standby-trainer/1 (v3)"), std::string::npos)
      << driver.told(EventKind::kOutputIncomplete)[0];
}

}  // namespace
}  // namespace monarch
