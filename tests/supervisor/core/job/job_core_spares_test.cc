// Spares are warmed by `spares.prepare`, once each, and nothing of the job depends on how that goes.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "supervisor/core/job/status.h"
#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::exited;
using fixtures::killed_by_us;

constexpr Duration kTimeout = Duration::seconds(120);

// A gang on v1 that may be replaced, and so many spares behind it.
JobSpec job_with_spares(std::uint32_t spares) {
  JobSpec spec = fixtures::job_that_recovers(1, 1, 2, 2);
  spec.launch = LaunchLocal{.spares = spares, .prepare = {.program = {"warm", "all"}, .timeout = kTimeout}};
  return spec;
}

struct Warming : Driver {
  explicit Warming(std::uint32_t spares) : Driver(job_with_spares(spares)) {
    begin();
    for (std::uint32_t i = 0; i < core.hosts().size(); ++i) join(i);
    give_ports();
    report({MeshId(0), Rank(0)}, RankPhase::kRunning);
  }

  RankReport of_spare(std::uint32_t host, RankPhase phase, RankEnd end = {}) const {
    RankReport report;
    report.process.rank = crew_rank(core.spec(), {key_of(host), 0});
    report.process.generation = crew(host).generation;
    report.phase = phase;
    report.pid = 77;
    report.end = std::move(end);
    report.output_complete = phase == RankPhase::kEnded;
    return report;
  }

  void spare(std::uint32_t host, RankPhase phase, RankEnd end = {}) {
    step(RankChanged{.host = HostId(host), .report = of_spare(host, phase, std::move(end)), .ended_at = now});
  }

  CrewKey key_of(std::uint32_t host) const { return {prepare_mesh(core.spec()), GangId(host)}; }
  const Crew& crew(std::uint32_t host) const { return core.crews().at(key_of(host)); }
  PrepareStage stage(std::uint32_t host) const { return prepare_stage(core.state(), HostId(host)); }

  // STARTs and STOPs of what warms a spare, as "start v2".
  std::vector<std::string> orders() const {
    std::vector<std::string> found;
    for (const Action& action : all) {
      const auto* start = std::get_if<SendStart>(&action);
      if (start != nullptr && start->message.mesh == MeshId(1)) {
        found.push_back("start " + core.hosts()[start->host.value()].name);
      }
      const auto* stop = std::get_if<SendStop>(&action);
      if (stop != nullptr && stop->message.ranks.front().mesh == MeshId(1)) {
        found.push_back("stop " + core.hosts()[stop->host.value()].name);
      }
    }
    return found;
  }

  void lose(std::uint32_t host) { step(WorkerEnded{.host = HostId(host), .how = "exit code 1", .orderly = false}); }
};

using Lines = std::vector<std::string>;

TEST(Spares, AreWarmedInTheFolderWhereRanksStart) {
  const auto folder = [](const std::vector<std::optional<std::string>>& workdirs) {
    JobSpec spec = job_with_spares(1);
    for (std::size_t m = 1; m < workdirs.size(); ++m) {
      spec.meshes.push_back(fixtures::mesh_of("other", {{"host", 1}}, 0));
    }
    for (std::size_t m = 0; m < workdirs.size(); ++m) spec.meshes[m].workdir = workdirs[m];
    Driver driver(spec);
    driver.begin();
    for (std::uint32_t i = 0; i < driver.core.hosts().size(); ++i) driver.join(i);
    const auto starts = driver.actions_of<SendStart>();
    return starts.empty() ? std::string("none") : std::get<SendStart>(starts.back()).message.workdir;
  };
  EXPECT_EQ(folder({"/tmp/there"}), "/tmp/there");
  EXPECT_EQ(folder({"below"}), "/srv/job/below");
  EXPECT_EQ(folder({"/tmp/of-$(self.rank)"}), "/srv/job");
  EXPECT_EQ(folder({"/one", "/other"}), "/srv/job");
  EXPECT_EQ(folder({"/one", "/one"}), "/one");
}

TEST(Spares, AreWarmedOnceAsSoonAsTheyAreConnected) {
  Warming driver(1);
  EXPECT_EQ(driver.orders(), Lines{"start v2"});
  driver.spare(1, RankPhase::kRunning);
  EXPECT_EQ(status_of(driver.core, "j", driver.now).hosts[1].preparation, "preparing");
  driver.spare(1, RankPhase::kEnded, exited(0));
  EXPECT_EQ(driver.stage(1), PrepareStage::kPrepared);
  EXPECT_EQ(driver.told(EventKind::kHostPrepared).size(), 1U);
  const JobStatus status = status_of(driver.core, "j", driver.now);
  EXPECT_EQ(status.hosts[1].preparation, "prepared");
  EXPECT_EQ(status.hosts[0].preparation, "");
  EXPECT_EQ(status.meshes.size(), 1U);
  driver.step(WorkerJoined{.host = HostId(1), .incarnation = 2});
  EXPECT_EQ(driver.orders(), Lines{"start v2"});
}

TEST(Spares, AreWarmedWithoutTheNumbersOfARank) {
  Warming driver(1);
  const auto starts = driver.actions_of<SendStart>();
  const auto sent = std::find_if(starts.begin(), starts.end(), [](const Action& action) {
    return std::get<SendStart>(action).message.mesh == MeshId(1);
  });
  ASSERT_NE(sent, starts.end());
  const Start& message = std::get<SendStart>(*sent).message;
  EXPECT_EQ(message.mesh_name, kPrepareMesh);
  EXPECT_EQ(message.program, (Lines{"warm", "all"}));
  EXPECT_EQ(message.workdir, "/srv/job");
  EXPECT_EQ(message.env,
            (std::map<std::string, std::string>{{"MONARCH_JOB_ID", "test-0001"}, {"MONARCH_PREPARE", "1"}}));
  ASSERT_EQ(message.ranks.size(), 1U);
  EXPECT_EQ(message.ranks[0].rank, (RankId{MeshId(1), Rank(1)}));
  EXPECT_TRUE(message.ranks[0].env.empty());
}

TEST(Spares, GetALeaseWhileTheyAreWarmedAndNoLonger) {
  Warming driver(1);
  const RankReport report = driver.of_spare(1, RankPhase::kRunning);
  EXPECT_TRUE(judge(driver.core.facts(), HostId(1), report).counts());
  EXPECT_FALSE(judge(driver.core.facts(), HostId(0), report).counts());
  EXPECT_TRUE(state_parts::is_granted(driver.core, report.process));
  EXPECT_FALSE(driver.core.facts().has_rank(report.process.rank));
  driver.spare(1, RankPhase::kEnded, exited(0));
  EXPECT_FALSE(state_parts::is_granted(driver.core, report.process));
  EXPECT_TRUE(judge(driver.core.facts(), HostId(1), report).counts());
}

TEST(Spares, StayOnesWhereWarmingFails) {
  Warming driver(1);
  driver.spare(1, RankPhase::kEnded, exited(3));
  EXPECT_EQ(driver.stage(1), PrepareStage::kUnprepared);
  EXPECT_EQ(
      driver.told(EventKind::kHostUnprepared),
      Lines{"v2: is not prepared: exit code 3; what it wrote is in /logs/spares-prepare/1.1.err; it stays a spare, "
            "and is taken after those that are prepared"});
  EXPECT_FALSE(driver.core.state().verdict);
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning);
  driver.lose(0);
  EXPECT_EQ(driver.core.state().slots, std::vector<HostId>{HostId(1)});
}

TEST(Spares, ThatTakeTooLongAreEnded) {
  Warming driver(1);
  driver.spare(1, RankPhase::kRunning);
  EXPECT_EQ(driver.core.next_deadline(), driver.crew(1).deadline);
  driver.pass_deadline();
  EXPECT_EQ(driver.orders(), (Lines{"start v2", "stop v2"}));
  driver.spare(1, RankPhase::kEnded, killed_by_us(15));
  ASSERT_EQ(driver.told(EventKind::kHostUnprepared).size(), 1U);
  EXPECT_NE(driver.told(EventKind::kHostUnprepared)[0].find("it took longer than spares.timeout (2m)"),
            std::string::npos);
}

TEST(Spares, ThatDoNotEndAreGivenUp) {
  Warming driver(1);
  driver.spare(1, RankPhase::kRunning);
  driver.pass_deadline();
  driver.pass_deadline();
  EXPECT_EQ(driver.host(1).phase, HostPhase::kDestroying);
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning);
}

TEST(Spares, ThatArePreparedAreTakenFirst) {
  Warming driver(3);
  driver.spare(1, RankPhase::kEnded, exited(1));
  driver.spare(3, RankPhase::kEnded, exited(0));
  driver.lose(0);
  EXPECT_EQ(driver.core.state().slots, std::vector<HostId>{HostId(3)});
  EXPECT_EQ(driver.orders(), (Lines{"start v2", "start v3", "start v4"}));
}

TEST(Spares, ThatAreNeededWhileTheyAreWarmedAreFreedFirst) {
  Warming driver(1);
  driver.spare(1, RankPhase::kRunning);
  driver.lose(0);
  EXPECT_EQ(driver.core.state().slots, std::vector<HostId>{HostId(1)});
  EXPECT_EQ(driver.orders(), (Lines{"start v2", "stop v2"}));
  driver.step(DeadlinePassed{}, Duration::seconds(1));  // the back-off is over
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kWaiting);
  driver.spare(1, RankPhase::kStopping);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kWaiting);
  driver.spare(1, RankPhase::kEnded, killed_by_us(15));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
  driver.start_again(0);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
  EXPECT_EQ(driver.orders(), (Lines{"start v2", "stop v2"}));
}

TEST(Spares, AreNotWarmedAnyLongerOnceTheJobEnds) {
  Warming driver(1);
  driver.spare(1, RankPhase::kRunning);
  driver.ended(0, exited(0));
  EXPECT_EQ(driver.orders(), (Lines{"start v2", "stop v2"}));
  EXPECT_EQ(driver.core.state().phase, JobPhase::kStopping);
  driver.spare(1, RankPhase::kEnded, killed_by_us(15));
  EXPECT_EQ(driver.core.state().phase, JobPhase::kShuttingDown);
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr);
  EXPECT_EQ(driver.verdict()->exit_code, 0);
}

TEST(Spares, ThatWereLostAreWarmedAgainByTheirNextWorker) {
  Warming driver(1);
  driver.spare(1, RankPhase::kEnded, exited(0));
  driver.lose(1);
  EXPECT_EQ(driver.host(1).phase, HostPhase::kLaunching);
  driver.join(1);
  EXPECT_EQ(driver.orders(), (Lines{"start v2", "start v2"}));
  EXPECT_EQ(driver.crew(1).generation.counter, 2U);
}

// What was durably done is not done again; what was said and lost is said again, at the same generation.
TEST(Spares, AreNotWarmedTwiceByASupervisorThatComesBack) {
  for (const bool done : {false, true}) {
    Warming driver(1);
    if (done) driver.spare(1, RankPhase::kEnded, exited(0));
    driver.step(SupervisorReturned{.term = Term(2)});
    EXPECT_EQ(driver.orders(), Lines{"start v2"});
    const std::vector<Action> missing = driver.core.outstanding(HostId(1), {});
    ASSERT_EQ(missing.size(), done ? 0U : 1U);
    if (!done) {
      EXPECT_EQ(std::get<SendStart>(missing[0]).message.generation, driver.crew(1).generation);
    }
    EXPECT_EQ(driver.core.outstanding(HostId(1), {driver.of_spare(1, RankPhase::kRunning)}).size(), done ? 1U : 0U);
  }
}

}  // namespace
}  // namespace monarch
