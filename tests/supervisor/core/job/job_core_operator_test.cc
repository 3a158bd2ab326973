// What an operator asks: gangs start again at no cost, and what cannot be done is refused in words.

#include <gtest/gtest.h>

#include "supervisor/core/job/operator_request.h"
#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/core/fixtures.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using fixtures::Driver;

// Two gangs of two ranks, each on a host of its own.
struct TwoGangs : Driver {
  static JobSpec spec(std::uint32_t pool = 2) {
    JobSpec spec = fixtures::job_of(2, 2);
    spec.meshes[0].gang = {.scope = GangScope::kDimension, .along = 0};
    spec.launch = LaunchLocal{.hosts = pool};
    for (Supervision* supervision : {&spec.supervision, &spec.meshes[0].supervision}) {
      supervision->reallocate.max = 4;
    }
    return spec;
  }
  explicit TwoGangs(std::uint32_t pool = 2) : Driver(spec(pool)) { run_all(); }

  Result<OperatorPlan> plan(OperatorRequest request) const { return operator_plan(core, request, now); }
  std::string ask(OperatorRequest request) {
    request.who = "monarch restart, pid 7";
    const auto made = plan(std::move(request));
    if (!made.ok()) return text("no: ", made.error().message);
    step(made->event);
    return made->words;
  }
  std::vector<std::string> told(EventKind kind) const {
    std::vector<std::string> found;
    for (const Action& action : all) {
      const auto* event = std::get_if<EmitEvent>(&action);
      if (event != nullptr && event->event.kind == kind) found.push_back(event->event.message);
    }
    return found;
  }
};

constexpr RankId kFirst{MeshId(0), Rank(0)};
constexpr RankId kThird{MeshId(0), Rank(2)};

TEST(OperatorAsked, StopsAGangWithItsGraceAndStartsItsNextGeneration) {
  TwoGangs job;
  const Generation before = job.crew(0).generation;
  EXPECT_EQ(job.ask({.wish = OperatorWish::kRestart, .ranks = {kFirst}}), "1 gang is stopped and started again");
  ASSERT_EQ(job.actions_of<SendStop>().size(), 1U);
  const auto stop = std::get<SendStop>(job.actions_of<SendStop>().front()).message;
  EXPECT_EQ(stop.ranks.size(), 2U);
  EXPECT_EQ(stop.grace, job.core.spec().meshes[0].stop.grace);
  job.ended(0, fixtures::killed_by_us(15));
  EXPECT_EQ(job.gang(0).phase, GangPhase::kStopping);
  job.ended(1, fixtures::killed_by_us(15));
  EXPECT_EQ(job.gang(0).phase, GangPhase::kReserving);
  EXPECT_GT(job.crew(0).generation, before);
  job.give_ports();
  EXPECT_EQ(job.variable(1, "MONARCH_RESTART_CAUSE"), "started again, asked by monarch restart, pid 7");
  job.report(kFirst, RankPhase::kRunning);
  job.report({MeshId(0), Rank(1)}, RankPhase::kRunning);
  EXPECT_EQ(job.gang(0).phase, GangPhase::kRunning);
  EXPECT_EQ(job.gang(1).phase, GangPhase::kRunning);
  EXPECT_EQ(job.core.state().phase, JobPhase::kRunning);
  EXPECT_TRUE(job.gang(0).failures.empty());
  ASSERT_EQ(job.told(EventKind::kGangStopping).size(), 1U);
  EXPECT_NE(job.told(EventKind::kGangStopping)[0].find("asked by monarch restart, pid 7"), std::string::npos);
  EXPECT_TRUE(job.told(EventKind::kGangRunning).back().ends_with(" after it was stopped"))
      << "nothing of it has failed";
}

TEST(OperatorAsked, StartsAGangAgainAlsoForOneWhoDoesNotSayWhoHeIs) {
  TwoGangs job;
  job.step(OperatorAsked{.wish = OperatorWish::kRestart, .ranks = {kFirst}, .who = ""});
  EXPECT_EQ(job.gang(0).phase, GangPhase::kStopping);
  for (std::uint32_t r = 0; r < 2; ++r) job.ended(r, fixtures::killed_by_us(15));
  EXPECT_EQ(job.gang(0).phase, GangPhase::kReserving) << "nobody would ever start it again, and the job would not end";
}

TEST(OperatorAsked, TakesARankThatFailsWhileItStopsForStopped) {
  TwoGangs job;
  (void)job.ask({.wish = OperatorWish::kRestart, .ranks = {kFirst}});
  job.ended(0, fixtures::exited(1));
  job.ended(1, fixtures::killed_by_us(15));
  EXPECT_EQ(job.core.state().phase, JobPhase::kRunning);
  EXPECT_EQ(job.gang(0).phase, GangPhase::kReserving);
}

TEST(OperatorAsked, StartsNothingAgainOnceTheJobIsStopped) {
  TwoGangs job;
  (void)job.ask({.wish = OperatorWish::kRestart, .ranks = {kFirst}});
  job.step(StopOrdered{.request = {.who = "alice"}});
  job.ended(0, fixtures::killed_by_us(15));
  job.ended(1, fixtures::killed_by_us(15));
  EXPECT_EQ(job.gang(0).phase, GangPhase::kStopped);
  EXPECT_EQ(job.ask({.wish = OperatorWish::kRestart, .ranks = {kThird}}), "no: the job is stopping");
}

TEST(OperatorAsked, RefusesWhatDoesNotRun) {
  TwoGangs job;
  job.ended(2, fixtures::exited(0));
  job.ended(3, fixtures::exited(0));
  EXPECT_EQ(job.ask({.wish = OperatorWish::kRestart, .ranks = {kThird}}), "no: no gang that is meant runs");
  EXPECT_EQ(job.ask({.wish = OperatorWish::kRestart, .ranks = {kFirst, kThird}}),
            "1 gang is stopped and started again; 1 does not run");
  EXPECT_EQ(job.ask({.wish = OperatorWish::kRestart, .ranks = {{MeshId(0), Rank(4)}}}), "no: no such rank");
  EXPECT_EQ(job.ask({.wish = OperatorWish::kRetry, .ranks = {{MeshId(1), Rank(0)}}}), "no: no such rank");
}

TEST(OperatorAsked, DrainsAndUndrainsHostsByName) {
  TwoGangs job(3);
  EXPECT_EQ(job.ask({.wish = OperatorWish::kDrain, .hosts = {"v1"}}),
            "1 host is drained: nothing new starts there; 1 gang goes on there until stopped or started again");
  EXPECT_EQ(job.host(0).standing, HostStanding::kDrained);
  EXPECT_EQ(job.gang(0).phase, GangPhase::kRunning);
  EXPECT_EQ(job.ask({.wish = OperatorWish::kDrain, .hosts = {"v9"}}), "no: the job has no host v9");
  EXPECT_EQ(job.ask({.wish = OperatorWish::kUndrain, .hosts = {"v2"}}), "no: it is not drained");
  EXPECT_EQ(job.ask({.wish = OperatorWish::kUndrain, .hosts = {"v1", "v2"}}), "1 host may be used again");
  EXPECT_EQ(job.host(0).standing, HostStanding::kGood);
  EXPECT_EQ(job.told(EventKind::kHostDrained).size(), 1U);
  EXPECT_EQ(job.told(EventKind::kHostUndrained).size(), 1U);
}

TEST(OperatorAsked, CountsAGangAndAHostOnceHoweverOftenTheyAreNamed) {
  TwoGangs job;
  OperatorRequest request{.wish = OperatorWish::kRestart, .who = "test"};
  request.ranks.assign(20'000, kFirst);
  request.ranks.push_back({MeshId(0), Rank(1)});
  request.ranks.push_back(kThird);
  const auto restart = job.plan(request);
  ASSERT_TRUE(restart.ok());
  EXPECT_EQ(restart->event.ranks, (std::vector<RankId>{kFirst, kThird}));
  EXPECT_EQ(restart->words, "2 gangs are stopped and started again");
  request.wish = OperatorWish::kRetry;
  const auto retry = job.plan(request);
  ASSERT_TRUE(retry.ok());
  EXPECT_EQ(retry->event.ranks.size(), 2U);
  const auto drain = job.plan({.wish = OperatorWish::kDrain, .hosts = {"v1", "v1"}, .who = "test"});
  ASSERT_TRUE(drain.ok());
  EXPECT_EQ(drain->event.hosts, std::vector<HostId>{HostId(0)});
}

TEST(OperatorAsked, RefusesMoreThanARecordHolds) {
  JobSpec spec = fixtures::job_of(1, 5'000);
  spec.meshes[0].gang = {.scope = GangScope::kEach};
  Driver job(spec);
  job.begin();
  OperatorRequest request{.wish = OperatorWish::kRetry, .who = "test"};
  for (std::uint32_t r = 0; r < 5'000; ++r) request.ranks.push_back({MeshId(0), Rank(r)});
  const auto made = operator_plan(job.core, request, job.now);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "at most 4000 gangs and 4000 hosts are asked for at a time, and this is 5000 and 0");
}

TEST(OperatorAsked, MovesGangsOnlyWhereAnotherHostIsLeft) {
  TwoGangs full;
  EXPECT_EQ(full.ask({.wish = OperatorWish::kDrain, .hosts = {"v1"}, .now = true}),
            "no: 1 host holds ranks, and no other host could take them");
  TwoGangs job(3);
  EXPECT_EQ(job.ask({.wish = OperatorWish::kDrain, .hosts = {"v1", "v2"}, .now = true}),
            "no: 2 hosts hold ranks, and 1 other host could take them");
  EXPECT_EQ(job.ask({.wish = OperatorWish::kDrain, .hosts = {"v1"}, .now = true}),
            "1 host is drained: nothing new starts there; 1 gang is stopped and started on another");
  EXPECT_EQ(job.gang(0).phase, GangPhase::kStopping);
}

TEST(OperatorAsked, MovesNothingBeyondTheBudget) {
  JobSpec spec = TwoGangs::spec(3);
  spec.supervision.reallocate.max = 0;
  JobCore core(spec, pool_of(spec), {.job_id = "test-0001"});
  core.restore(TwoGangs(3).core.state());
  const auto made = operator_plan(core, {.wish = OperatorWish::kDrain, .hosts = {"v1"}, .now = true}, Instant{});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "to move them takes 1 replacement, and supervision.reallocate allows none");
}

TEST(OperatorAsked, DrainsNoHostThatAGangWaitsToStartOnAndNobodyCouldReplace) {
  Driver job(TwoGangs::spec(2));
  job.begin();
  job.join(0);
  const auto made = operator_plan(job.core, {.wish = OperatorWish::kDrain, .hosts = {"v2"}}, job.now);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "1 host holds ranks, and no other host could take them");
  Driver roomy(TwoGangs::spec(3));
  roomy.begin();
  EXPECT_TRUE(operator_plan(roomy.core, {.wish = OperatorWish::kDrain, .hosts = {"v2"}}, roomy.now).ok());
}

TEST(OperatorAsked, DrainsNoHostThatAGangWaitsToStartOnWhileAnotherRunsThere) {
  JobSpec spec = TwoGangs::spec(3);
  MeshSpec second = spec.meshes[0];
  second.name = "second";
  second.like = MeshId(0);
  second.depends_on = {MeshId(0)};
  spec.meshes[0].ready.kind = ReadyKind::kNotify;
  spec.meshes.push_back(second);
  Driver job(spec);
  job.run_all();
  const auto made = operator_plan(job.core, {.wish = OperatorWish::kDrain, .hosts = {"v1"}}, job.now);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "a gang waits to start on v1, where another runs: --now moves both");
  EXPECT_TRUE(operator_plan(job.core, {.wish = OperatorWish::kDrain, .hosts = {"v1"}, .now = true}, job.now).ok());
}

TEST(OperatorAsked, RestartsNothingOnADrainedHostThatNobodyCouldReplace) {
  TwoGangs job;
  (void)job.ask({.wish = OperatorWish::kDrain, .hosts = {"v1"}});
  EXPECT_EQ(job.ask({.wish = OperatorWish::kRestart, .ranks = {kFirst}}),
            "no: 1 host holds ranks, and no other host could take them");
  EXPECT_EQ(job.gang(0).phase, GangPhase::kRunning);
  EXPECT_EQ(job.ask({.wish = OperatorWish::kRestart, .ranks = {kThird}}), "1 gang is stopped and started again");
  TwoGangs roomy(3);
  (void)roomy.ask({.wish = OperatorWish::kDrain, .hosts = {"v1"}});
  EXPECT_EQ(roomy.ask({.wish = OperatorWish::kRestart, .ranks = {kFirst}}), "1 gang is stopped and started again");
}

TEST(OperatorAsked, RestartsNothingOnADrainedHostWhereAnotherGangGoesOn) {
  JobSpec spec = TwoGangs::spec(3);
  spec.meshes[0].gang = {.scope = GangScope::kEach};
  Driver job(spec);
  job.run_all();
  job.step(OperatorAsked{.wish = OperatorWish::kDrain, .hosts = {HostId(0)}, .who = "alice"});
  const auto made = operator_plan(job.core, {.wish = OperatorWish::kRestart, .ranks = {kFirst}}, job.now);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message,
            "v1 is drained, and another gang goes on there: monarch drain --now v1 moves all of them");
  EXPECT_TRUE(
      operator_plan(job.core, {.wish = OperatorWish::kRestart, .ranks = {kFirst, {MeshId(0), Rank(1)}}}, job.now).ok());
}

TEST(OperatorAsked, CountsReplacementsOfTheWindowAlone) {
  TwoGangs job(3);
  JobState state = job.core.state();
  state.reallocations = {4, job.now};
  JobCore core(TwoGangs::spec(3), pool_of(TwoGangs::spec(3)), {.job_id = "test-0001"});
  core.restore(state);
  const OperatorRequest drain{.wish = OperatorWish::kDrain, .hosts = {"v1"}, .now = true};
  EXPECT_FALSE(operator_plan(core, drain, job.now + Duration::seconds(3'540)).ok());
  EXPECT_TRUE(operator_plan(core, drain, job.now + Duration::seconds(3'660)).ok());
}

TEST(OperatorAsked, SaysWhatHelpsAGangThatDoesNotRunYet) {
  TwoGangs job;
  JobState state = job.core.state();
  const auto refused = [&](GangPhase phase) {
    JobCore core(TwoGangs::spec(), pool_of(TwoGangs::spec()), {.job_id = "test-0001"});
    state_parts::gang(state, MeshId(0), GangId(0)).phase = phase;
    core.restore(state);
    return operator_plan(core, {.wish = OperatorWish::kRestart, .ranks = {kFirst}, .who = "alice"}, job.now)
        .error()
        .message;
  };
  EXPECT_EQ(refused(GangPhase::kParked),
            "no gang that is meant runs: 1 gang is parked, and monarch retry tries it again");
  EXPECT_EQ(
      refused(GangPhase::kWaiting),
      "no gang that is meant runs: 1 gang waits to start, and monarch retry starts it as soon as its hosts are there");
}

TEST(OperatorAsked, ForgivesFailuresAndHosts) {
  TwoGangs job;
  JobState state = job.core.state();
  GangState& gang = state_parts::gang(state, MeshId(0), GangId(0));
  gang.failures = {job.now};
  gang.phase = GangPhase::kWaiting;
  state_parts::crew(state, MeshId(0), GangId(0)).phase = CrewPhase::kWaiting;
  gang.failure = Verdict{};
  gang.not_before = job.now + Duration::seconds(30);
  state.reallocations = {job.now};
  HostState& host = state_parts::host(state, HostId(1));
  host.standing = HostStanding::kQuarantined;
  host.losses = 3;
  JobCore core(TwoGangs::spec(), pool_of(TwoGangs::spec()), {.job_id = "test-0001"});
  core.restore(state);
  const auto made = operator_plan(core, {.wish = OperatorWish::kRetry, .ranks = {kFirst}, .who = "alice"}, job.now);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->words, "what failed is forgiven; 1 gang is tried again");
  const auto actions = core.step(made->event, job.now + Duration::seconds(1));
  ASSERT_FALSE(actions.empty());
  const JobEvent& told = std::get<EmitEvent>(actions.front()).event;
  EXPECT_EQ(told.kind, EventKind::kFailuresForgiven);
  EXPECT_EQ(
      told.message,
      "1 failure of ranks and 1 replacement of hosts do not count any longer, asked by alice; may be used again: v2");
  const GangState& forgiven = state_parts::gang(core.state(), MeshId(0), GangId(0));
  EXPECT_TRUE(forgiven.failures.empty());
  EXPECT_LE(forgiven.not_before, job.now + Duration::seconds(1));
  EXPECT_TRUE(core.state().reallocations.empty());
  EXPECT_EQ(state_parts::host(core.state(), HostId(1)).standing, HostStanding::kGood);
  EXPECT_EQ(state_parts::host(core.state(), HostId(1)).losses, 0U);
}

}  // namespace
}  // namespace monarch
