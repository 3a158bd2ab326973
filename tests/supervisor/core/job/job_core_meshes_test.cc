// Several meshes in one job: who waits for whom, what is held for them, when they are ready, in which order they stop.

#include <gtest/gtest.h>

#include <algorithm>

#include "supervisor/core/job/status.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::exited;
using fixtures::mesh_of;

constexpr MeshId kStore(0);
constexpr MeshId kTrainer(1);

// A store of one rank that says when it is ready, and a trainer of two hosts that waits for it.
JobSpec store_and_trainer() {
  JobSpec spec;
  spec.name = "test";
  spec.directory = "/srv/job";
  spec.meshes.push_back(mesh_of("store", {{"host", 1}}, 0));
  spec.meshes[0].ready.kind = ReadyKind::kNotify;
  spec.meshes[0].ports = {{.name = "http", .fixed = {}}};
  spec.meshes.push_back(mesh_of("trainer", {{"host", 2}, {"gpu", 2}}, 1));
  spec.meshes[1].depends_on = {kStore};
  spec.meshes[1].program = {"train", "--store", "$(mesh.store.host):$(mesh.store.port.http)", "$(self.rank)"};
  return spec;
}

struct Meshes : Driver {
  using Driver::Driver;

  void join_all() {
    begin();
    for (std::uint32_t i = 0; i < core.spec().hosts_needed(); ++i) join(i);
  }

  // Answers what was asked for and not answered yet, with ports from 30000 on.
  void answer_reserves() {
    const std::vector<Action> asked = actions_of<SendReserve>();
    for (; answered < asked.size(); ++answered) {
      const auto& sent = std::get<SendReserve>(asked[answered]);
      step(PortsReserved{.host = sent.host, .reserved = answer_to(sent.message)});
    }
  }

  Reserved answer_to(const Reserve& asked) {
    Reserved answer{.mesh = asked.mesh, .gang = asked.gang, .generation = asked.generation};
    for (std::uint32_t i = 0; i < asked.count; ++i) answer.ports.push_back(next_port++);
    answer.ports.insert(answer.ports.end(), asked.fixed.begin(), asked.fixed.end());
    return answer;
  }

  void run_mesh(MeshId mesh) {
    for (std::uint32_t r = 0; r < core.spec().meshes[mesh.value()].size(); ++r) {
      report({mesh, Rank(r)}, RankPhase::kRunning);
    }
  }

  std::vector<Action> say_ready(RankId id) {
    RankReport said = report_of(id, RankPhase::kRunning);
    said.ready = true;
    return step(RankChanged{
        .host = core.placement().host_of(id), .report = said, .ended_at = now, .uncertainty = Duration::zero()});
  }

  std::vector<std::string> started() const {
    std::vector<std::string> names;
    for (const Action& action : actions_of<SendStart>()) {
      const std::string& name = std::get<SendStart>(action).message.mesh_name;
      if (names.empty() || names.back() != name) names.push_back(name);
    }
    return names;
  }

  std::vector<std::string> told_to_stop(const std::vector<Action>& actions) const {
    std::vector<std::string> names;
    for (const Action& action : actions) {
      const auto* stop = std::get_if<SendStop>(&action);
      if (stop == nullptr) continue;
      const std::string& name = core.spec().meshes[stop->message.ranks.front().mesh.value()].name;
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
  }

  std::vector<std::string> told(const std::vector<Action>& actions) const {
    std::vector<std::string> lines;
    for (const Action& action : actions) {
      if (const auto* tell = std::get_if<SendTell>(&action)) lines.push_back(tell->message.json);
    }
    return lines;
  }

  void end_mesh(MeshId mesh, RankEnd end) {
    for (std::uint32_t r = 0; r < core.spec().meshes[mesh.value()].size(); ++r) {
      report({mesh, Rank(r)}, RankPhase::kEnded, end);
    }
  }

  std::size_t answered = 0;
  std::uint16_t next_port = 30'000;
};

TEST(JobCoreMeshes, StartAMeshOnceThoseThatItDependsOnAreReady) {
  Meshes job(store_and_trainer());
  job.join_all();
  job.answer_reserves();
  EXPECT_EQ(job.started(), std::vector<std::string>{"store"});
  job.run_mesh(kStore);
  job.answer_reserves();
  EXPECT_EQ(job.started(), std::vector<std::string>{"store"});  // it runs, and has not said that it is ready
  EXPECT_EQ(job.core.state().phase, JobPhase::kStarting);
  job.say_ready({kStore, Rank(0)});
  job.answer_reserves();
  EXPECT_EQ(job.started(), (std::vector<std::string>{"store", "trainer"}));
  job.run_mesh(kTrainer);
  EXPECT_EQ(job.core.state().phase, JobPhase::kRunning);
  const JobStatus status = status_of(job.core, "test-0001", job.now);
  EXPECT_EQ(status.meshes[0].phase, "ready");
  EXPECT_TRUE(status.meshes[1].ranks[3].ready);
}

TEST(JobCoreMeshes, ADependencyThatIsDoneCountsAsReady) {
  Meshes job(store_and_trainer());
  job.join_all();
  job.answer_reserves();
  job.run_mesh(kStore);
  job.end_mesh(kStore, exited(0));
  job.answer_reserves();
  EXPECT_EQ(job.started(), (std::vector<std::string>{"store", "trainer"}));
}

TEST(JobCoreMeshes, TellsEachRankItsPortsAndExpandsThemElsewhere) {
  Meshes job(store_and_trainer());
  job.join_all();
  job.answer_reserves();
  job.run_mesh(kStore);
  job.say_ready({kStore, Rank(0)});
  job.answer_reserves();
  const auto starts = job.actions_of<SendStart>();
  const Start& store = std::get<SendStart>(starts[0]).message;
  EXPECT_EQ(store.env.at("MASTER_PORT"), "30000");
  EXPECT_EQ(store.env.at("MONARCH_PORT_HTTP"), "30001");
  EXPECT_EQ(store.ranks[0].ports, std::vector<std::uint16_t>{30'001});
  EXPECT_EQ(store.ready, ReadyKind::kNotify);
  const Start& trainer = std::get<SendStart>(starts[2]).message;
  EXPECT_EQ(trainer.program, (std::vector<std::string>{"train", "--store", "127.0.1.1:30001", "2"}));
  EXPECT_TRUE(trainer.ranks[0].program.empty());
  EXPECT_EQ(trainer.ranks[1].program.back(), "3");
  EXPECT_TRUE(trainer.ranks[1].ports.empty());
}

TEST(JobCoreMeshes, ReservesOnEveryHostOfAGangBeforeAnythingStarts) {
  JobSpec spec = fixtures::job_of(2, 2);
  spec.meshes[0].ports = {{.name = "a", .fixed = {}}, {.name = "b", .fixed = {}}};
  spec.meshes[0].ready = {.kind = ReadyKind::kTcp, .port = 1};
  Meshes job(spec);
  job.join_all();
  const auto asked = job.actions_of<SendReserve>();
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(std::get<SendReserve>(asked[0]).message.count, 5U);
  EXPECT_EQ(std::get<SendReserve>(asked[1]).message.count, 4U);
  job.step(PortsReserved{.host = HostId(0), .reserved = job.answer_to(std::get<SendReserve>(asked[0]).message)});
  EXPECT_TRUE(job.started().empty());
  // The first host says it again: that is no answer of the second.
  job.step(PortsReserved{.host = HostId(0), .reserved = job.answer_to(std::get<SendReserve>(asked[0]).message)});
  EXPECT_TRUE(job.started().empty());
  EXPECT_EQ(job.core.outstanding(HostId(0), {}).size(), 0U);
  EXPECT_EQ(job.core.outstanding(HostId(1), {}).size(), 1U);
  job.next_port = 40'000;
  job.step(PortsReserved{.host = HostId(1), .reserved = job.answer_to(std::get<SendReserve>(asked[1]).message)});
  ASSERT_EQ(job.actions_of<SendStart>().size(), 2U);
  const Start second = std::get<SendStart>(job.actions_of<SendStart>()[1]).message;
  EXPECT_EQ(second.ranks[1].ports, (std::vector<std::uint16_t>{40'002, 40'003}));
  EXPECT_EQ(second.ranks[1].ready_port, 40'003);
  EXPECT_EQ(second.ranks[1].env.at("MONARCH_PORT_B"), "40003");
}

TEST(JobCoreMeshes, HasPortsChosenOutOfThoseOfTheSpecButForWhatMeshesFix) {
  JobSpec spec = fixtures::job_of(1, 1);
  spec.meshes[0].ports = {{.name = "a", .fixed = 20'005}, {.name = "b", .fixed = 9'000}};
  Meshes any(spec);
  any.join_all();
  EXPECT_EQ(std::get<SendReserve>(any.actions_of<SendReserve>()[0]).message.first_port, 0);
  spec.network.ports = PortSpan{.first = 20'000, .last = 20'099};
  Meshes job(spec);
  job.join_all();
  const Reserve asked = std::get<SendReserve>(job.actions_of<SendReserve>()[0]).message;
  EXPECT_EQ(asked.first_port, 20'000);
  EXPECT_EQ(asked.last_port, 20'099);
  EXPECT_EQ(asked.spared, std::vector<std::uint16_t>{20'005});
}

TEST(JobCoreMeshes, FailsTheStartWithTheHostAndWhatIsTakenThere) {
  Meshes job(fixtures::job_of(2, 1));
  job.join_all();
  const Reserve asked = std::get<SendReserve>(job.actions_of<SendReserve>()[0]).message;
  job.step(PortsReserved{
      .host = HostId(0),
      .reserved = {
          .mesh = asked.mesh, .gang = asked.gang, .generation = asked.generation, .error = "port 8080: taken"}});
  ASSERT_TRUE(job.core.state().verdict);
  EXPECT_EQ(job.core.state().verdict->exit_code, 69);
  EXPECT_EQ(job.core.state().verdict->reason, "v1: could not reserve what mesh trainer needs there: port 8080: taken");
}

TEST(JobCoreMeshes, FailsTheStartWhereAHostLacksGpus) {
  JobSpec spec = fixtures::job_of(1, 2);
  spec.meshes[0].resources.gpus = 2;
  Meshes job(spec);
  job.join_all();
  ASSERT_TRUE(job.core.state().verdict);
  EXPECT_EQ(job.core.state().verdict->exit_code, 69);
  EXPECT_EQ(job.core.state().verdict->reason, "v1: mesh trainer needs 4 GPUs, and there are 0");
  EXPECT_TRUE(job.actions_of<SendReserve>().empty());
}

TEST(JobCoreMeshes, StopInTheReverseOrderOfTheirStages) {
  Meshes job(store_and_trainer());
  job.join_all();
  job.answer_reserves();
  job.run_mesh(kStore);
  job.say_ready({kStore, Rank(0)});
  job.answer_reserves();
  job.run_mesh(kTrainer);
  const auto first = job.step(StopOrdered{.request = {.who = "test"}});
  EXPECT_EQ(job.told_to_stop(first), std::vector<std::string>{"trainer"});
  EXPECT_EQ(job.told(first),
            (std::vector<std::string>{R"({"v":1,"event":"stopping","signal":15,"grace_milliseconds":30000})",
                                      R"({"v":1,"event":"stopping","signal":15,"grace_milliseconds":30000})"}));
  for (std::uint32_t r = 0; r < 3; ++r) job.report({kTrainer, Rank(r)}, RankPhase::kEnded, exited(0));
  EXPECT_EQ(job.gang(0).phase, GangPhase::kRunning);
  const auto last = job.report({kTrainer, Rank(3)}, RankPhase::kEnded, exited(0));
  EXPECT_EQ(job.told_to_stop(last), std::vector<std::string>{"store"});
  job.end_mesh(kStore, exited(0));
  EXPECT_EQ(job.core.state().phase, JobPhase::kShuttingDown);
}

TEST(JobCoreMeshes, AKillStopsEveryStageAtOnce) {
  Meshes job(store_and_trainer());
  job.join_all();
  job.answer_reserves();
  job.run_mesh(kStore);
  job.say_ready({kStore, Rank(0)});
  job.answer_reserves();
  job.run_mesh(kTrainer);
  const auto actions = job.step(StopOrdered{.request = {.how = StopHow::kKill, .who = "test"}});
  EXPECT_EQ(job.told_to_stop(actions), (std::vector<std::string>{"store", "trainer"}));
  EXPECT_TRUE(job.told(actions).empty());
}

TEST(JobCoreMeshes, CountsTheGenerationsOfEachGangByThemselves) {
  JobSpec spec = fixtures::job_of(3, 1);
  spec.meshes[0].gang.scope = GangScope::kEach;
  Meshes job(spec);
  job.run_all();
  for (std::uint32_t g = 0; g < 3; ++g) EXPECT_EQ(job.crew(g).generation, (Generation{Term(1), 1}));
}

TEST(JobCoreMeshes, TellsOtherGangsOfAFailedOne) {
  JobSpec spec = fixtures::job_of(2, 1);
  spec.meshes[0].gang.scope = GangScope::kEach;
  Meshes job(spec);
  job.run_all();
  const auto actions = job.ended(1, exited(3));
  const std::vector<std::string> expected = {
      R"({"v":1,"event":"peer_lost","mesh":"trainer","gang":1,"generation":1,"rank_count":1,"ranks":[1]})",
      R"({"v":1,"event":"stopping","signal":15,"grace_milliseconds":30000})"};
  EXPECT_EQ(job.told(actions), expected);
}

TEST(JobCoreMeshes, FailsWithTheCodeOfASetupThatFailed) {
  Meshes job(fixtures::job_of(1, 2));
  job.run_all();
  job.ended(1, {.kind = EndKind::kSetupFailed, .value = 5, .detail = {}});
  job.ended(0, fixtures::killed_by_us(9));
  ASSERT_TRUE(job.core.state().verdict);
  EXPECT_EQ(job.core.state().verdict->exit_code, 5);
  EXPECT_EQ(job.core.state().verdict->reason, "trainer: setup failed with exit code 5 on host v1");
  EXPECT_EQ(job.core.state().verdict->cause.rule, "setup failed: fail, no retry");
}

TEST(JobCoreMeshes, NamesAtStartTimeoutWhoIsNotReadyAndWhatWaitsForIt) {
  Meshes job(store_and_trainer());
  job.join_all();
  job.answer_reserves();
  job.run_mesh(kStore);
  job.pass_deadline();
  ASSERT_TRUE(job.core.state().verdict);
  EXPECT_EQ(job.core.state().verdict->exit_code, 69);
  EXPECT_EQ(job.core.state().verdict->reason,
            "not started within start_timeout (2m): waiting for ranks store/0@v1 (has not said READY=1); not started: "
            "trainer");
  EXPECT_EQ(job.core.state().verdict->cause.summary, job.core.state().verdict->reason);
}

TEST(JobCoreMeshes, LifetimeIsAnnouncedAndThenStopsTheJob) {
  JobSpec spec = fixtures::job_of(1, 1);
  spec.lifetime.max = Duration::seconds(100);
  Meshes job(spec);
  job.run_all();
  const auto warned = job.pass_deadline();
  ASSERT_EQ(Driver::count<EmitEvent>(warned), 1U);
  EXPECT_EQ(std::get<EmitEvent>(warned[0]).event.kind, EventKind::kJobExpiring);
  EXPECT_FALSE(job.core.state().verdict);
  job.pass_deadline();
  ASSERT_TRUE(job.core.state().verdict);
  EXPECT_EQ(job.core.state().verdict->exit_code, 92);
  EXPECT_EQ(job.core.state().verdict->outcome, Outcome::kStopped);
}

TEST(JobCoreMeshes, IdlenessIsAnnouncedOnceAndChangesNothing) {
  JobSpec spec = fixtures::job_of(1, 1);
  spec.lifetime.idle = Duration::seconds(100);
  Meshes job(spec);
  EXPECT_TRUE(job.step(IdleNoted{Duration::seconds(10)}).empty()) << "nothing is up yet";
  job.run_all();
  const auto told = job.step(IdleNoted{Duration::seconds(10)});
  ASSERT_EQ(told.size(), 1U);
  const JobEvent& event = std::get<EmitEvent>(told[0]).event;
  EXPECT_EQ(event.kind, EventKind::kJobExpiring);
  EXPECT_EQ(event.severity, Severity::kWarning);
  EXPECT_EQ(event.message, "lifetime.idle (1m 40s): nobody has used the job, it is stopped in 10s");
  EXPECT_FALSE(job.core.state().verdict);
}

// ---- sidecars ----

JobSpec with_sidecar() {
  JobSpec spec = fixtures::job_of(1, 1);
  spec.meshes.push_back(mesh_of("monitor", {{"host", 1}}, 0));
  spec.meshes[1].sidecar = true;
  spec.meshes[1].like = MeshId(0);
  return spec;
}

constexpr MeshId kMain(0);
constexpr MeshId kMonitor(1);

Meshes running_with_sidecar() {
  Meshes job(with_sidecar());
  job.join_all();
  job.answer_reserves();
  job.run_mesh(kMonitor);
  job.answer_reserves();
  job.run_mesh(kMain);
  return job;
}

TEST(JobCoreMeshes, ASidecarIsFirstUpAndLastDown) {
  Meshes job = running_with_sidecar();
  EXPECT_EQ(job.started(), (std::vector<std::string>{"monitor", "trainer"}));
  EXPECT_EQ(job.core.state().phase, JobPhase::kRunning);
  const auto done = job.report({kMain, Rank(0)}, RankPhase::kEnded, exited(0));
  EXPECT_EQ(job.told_to_stop(done), std::vector<std::string>{"monitor"});
  job.report({kMonitor, Rank(0)}, RankPhase::kEnded, fixtures::killed_by_us(15));
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_EQ(job.verdict()->exit_code, 0);
}

TEST(JobCoreMeshes, ASidecarThatFailsIsAWarningAndDecidesNothing) {
  Meshes job = running_with_sidecar();
  const auto failed = job.report({kMonitor, Rank(0)}, RankPhase::kEnded, exited(3));
  EXPECT_FALSE(job.core.state().verdict);
  bool warned = false;
  for (const Action& action : failed) {
    const auto* said = std::get_if<EmitEvent>(&action);
    if (said == nullptr || said->event.kind != EventKind::kGangFailed) continue;
    warned = true;
    EXPECT_EQ(said->event.severity, Severity::kWarning);
    EXPECT_EQ(said->event.rank, 0U);
  }
  EXPECT_TRUE(warned);
  job.report({kMain, Rank(0)}, RankPhase::kEnded, exited(0));
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_EQ(job.verdict()->exit_code, 0);
}

TEST(JobCoreMeshes, ASidecarThatEndsBeforeItIsReadyFailsTheStart) {
  for (const int code : {0, 3}) {
    JobSpec spec = with_sidecar();
    spec.meshes[1].ready.kind = ReadyKind::kNotify;
    Meshes job(spec);
    job.join_all();
    job.answer_reserves();
    job.run_mesh(kMonitor);
    job.report({kMonitor, Rank(0)}, RankPhase::kEnded, exited(code));
    ASSERT_TRUE(job.core.state().verdict) << code;
    EXPECT_EQ(job.core.state().verdict->exit_code, code == 0 ? 69 : code) << "a 0 is no success of the job";
    EXPECT_EQ(job.core.state().verdict->cause.kind, CauseKind::kStart);
    EXPECT_NE(job.core.state().verdict->reason.find("ended before it was ready: exit code"), std::string::npos)
        << job.core.state().verdict->reason;
    EXPECT_EQ(job.started(), std::vector<std::string>{"monitor"});
  }
}

// Trying again would take as long as making it took, until start_timeout is said to be the cause.
TEST(JobCoreMeshes, ActorsThatCannotBeMadeAreNotTriedAgain) {
  JobSpec spec = with_sidecar();
  spec.meshes[1].serves = true;
  spec.meshes[1].ready.kind = ReadyKind::kNotify;
  spec.meshes[1].supervision.restart.max = 4;
  Meshes job(spec);
  job.join_all();
  job.answer_reserves();
  job.run_mesh(kMonitor);
  job.report({kMonitor, Rank(0)}, RankPhase::kEnded, exited(1));
  ASSERT_TRUE(job.core.state().verdict);
  EXPECT_EQ(job.core.state().verdict->exit_code, 1);
  EXPECT_EQ(job.core.state().verdict->cause.kind, CauseKind::kRank) << "so that its last words are told";
  EXPECT_EQ(job.core.state().verdict->cause.rule,
            "its actors could not be made: fail, no retry; the other meshes wait for it: fail");
}

TEST(JobCoreMeshes, ASidecarOfWhichOneRankEndsBeforeItIsReadyFailsTheStartAtOnce) {
  JobSpec spec = with_sidecar();
  spec.meshes[1] = mesh_of("monitor", {{"host", 1}, {"slot", 2}}, 1);
  spec.meshes[1].sidecar = true;
  spec.meshes[1].like = MeshId(0);
  spec.meshes[1].ready.kind = ReadyKind::kNotify;
  Meshes job(spec);
  job.join_all();
  job.answer_reserves();
  job.run_mesh(kMonitor);
  job.report({kMonitor, Rank(1)}, RankPhase::kEnded, exited(0));
  ASSERT_TRUE(job.core.state().verdict) << "the other rank lives, and all would wait until start_timeout";
  const FirstCause& cause = job.core.state().verdict->cause;
  EXPECT_EQ(cause.kind, CauseKind::kStart);
  EXPECT_EQ(cause.rank, 1U);
  EXPECT_EQ(cause.summary, "sidecar monitor ended before it was ready: exit code 0");
  EXPECT_EQ(job.gang(0, 1).phase, GangPhase::kStopping);
}

}  // namespace
}  // namespace monarch
