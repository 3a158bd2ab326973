// Idle slots: they start when they are claimed, with what was claimed, and rest again once they are let go.

#include <gtest/gtest.h>

#include "supervisor/core/facts/claims.h"
#include "supervisor/core/job/claim_plan.h"
#include "supervisor/core/job/roster.h"
#include "supervisor/core/job/status.h"
#include "tests/supervisor/core/fixtures.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using fixtures::Driver;
constexpr ClaimHolder kAlice{HostId(0), ClaimOwner(7)};

// Eight slots, four on each of two hosts, and beside them what decides about the job.
struct Slotted : Driver {
  static JobSpec spec(std::uint32_t restarts, bool alone) {
    JobSpec spec = fixtures::job_that_recovers(2, 4, restarts);
    MeshSpec& procs = spec.meshes[0];
    procs.name = "procs";
    procs.gang.scope = GangScope::kEach;
    procs.idle = procs.sidecar = true;
    if (!alone) spec.meshes.push_back(fixtures::mesh_of("drive", {{"x", 1}}, 1));
    return spec;
  }
  explicit Slotted(std::uint32_t restarts = 0, bool alone = true) : Driver(spec(restarts, alone)) {
    begin();
    for (std::uint32_t i = 0; i < core.spec().hosts_needed(); ++i) join(i);
    give_ports();
    if (!alone) report({MeshId(1), Rank(0)}, RankPhase::kRunning);
  }

  Result<SlotsClaimed> plan(const SlotWish& wish, ClaimHolder holder = kAlice) const {
    return claim_plan(core.facts(), holder, 1, wish);
  }
  std::string refused(const SlotWish& wish, ClaimHolder holder = kAlice) const {
    const auto made = plan(wish, holder);
    return made.ok() ? "" : made.error().message;
  }
  ClaimId claim(const SlotWish& wish) {
    const auto made = plan(wish);
    EXPECT_TRUE(made.ok()) << made.error().message;
    if (!made.ok()) return {};
    step(*made);
    return made->claim.id;
  }
  void run(std::uint32_t slot) {
    give_ports();
    report({MeshId(0), Rank(slot)}, RankPhase::kRunning);
  }
  void let_go(ClaimId id) { step(SlotsLetGo{.claims = {id}, .why = "a test is done"}); }
  GangPhase phase(std::uint32_t slot) const { return gang(slot).phase; }
};

SlotWish wish_of(std::uint32_t count) {
  SlotWish wish;
  wish.count = count;
  wish.name = "workers";
  return wish;
}

TEST(Claims, AJobOfIdleSlotsRunsWithoutAProcessUntilItIsStopped) {
  Slotted job;
  EXPECT_EQ(job.core.state().phase, JobPhase::kRunning);
  EXPECT_TRUE(job.actions_of<SendReserve>().empty());
  EXPECT_TRUE(job.actions_of<SendStart>().empty());
  job.step(StopOrdered{.request = {.who = "test"}});
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_EQ(job.phase(3), GangPhase::kStopped);
}

TEST(Claims, StartTheLowestIdleSlotsOfAHostWithWhatIsTheirs) {
  Slotted job;
  SlotWish wish = wish_of(2);
  wish.env = {{"ALL", "a"}, {"ONE", "of all"}};
  wish.rank_env = {{}, {{"ONE", "mine"}}};
  wish.program = {"python3", "other.py"};
  wish.workdir = "/home/alice";
  job.claim(wish);
  EXPECT_EQ(job.phase(0), GangPhase::kReserving);
  EXPECT_EQ(job.phase(2), GangPhase::kIdle);
  job.run(0);
  job.run(1);
  EXPECT_EQ(job.phase(1), GangPhase::kRunning);
  EXPECT_EQ(job.variable(0, "ONE"), "of all");
  EXPECT_EQ(job.variable(1, "ONE"), "mine");
  EXPECT_EQ(job.variable(1, "ALL"), "a");
  const Start start = std::get<SendStart>(job.actions_of<SendStart>().front()).message;
  EXPECT_EQ(start.program, (std::vector<std::string>{"python3", "other.py"}));
  EXPECT_EQ(start.workdir, "/home/alice");
  EXPECT_EQ(job.told(EventKind::kSlotsClaimed),
            std::vector<std::string>{"procs/0-1 as workers: claimed by a process on v1"});
}

TEST(Claims, AreAllOrNoneAndSayWhoHasTheOthers) {
  Slotted job;
  job.claim(wish_of(3));
  EXPECT_EQ(job.refused(wish_of(2)),
            "it wants 2 slots of mesh procs on v1, and 1 of 4 are idle: workers (3) has the others");
  SlotWish both = wish_of(1);
  both.hosts = {"v2", "v1"};
  const auto made = job.plan(both);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->claim.ranks, (std::vector<Rank>{Rank(4), Rank(3)})) << "in the order of its hosts";
}

TEST(Claims, TakeNeighboursWhereThereAre) {
  Slotted job;
  const ClaimId first = job.claim(wish_of(1));
  job.claim(wish_of(1));
  job.run(0);
  job.let_go(first);
  job.report({MeshId(0), Rank(0)}, RankPhase::kEnded, fixtures::killed_by_us(15));
  ASSERT_EQ(job.phase(0), GangPhase::kIdle);
  EXPECT_EQ(job.plan(wish_of(2))->claim.ranks, (std::vector<Rank>{Rank(2), Rank(3)}));
  EXPECT_EQ(job.plan(wish_of(3))->claim.ranks, (std::vector<Rank>{Rank(0), Rank(2), Rank(3)}));
}

TEST(Claims, RestAgainOnceTheyAreLetGo) {
  Slotted job;
  const ClaimId id = job.claim(wish_of(2));
  job.run(0);
  job.run(1);
  job.let_go(id);
  EXPECT_EQ(job.phase(0), GangPhase::kStopping);
  job.ended(0, fixtures::killed_by_us(15));
  job.ended(1, fixtures::exited(0));
  EXPECT_EQ(job.phase(0), GangPhase::kIdle);
  EXPECT_EQ(job.phase(1), GangPhase::kIdle);
  EXPECT_EQ(job.core.state().phase, JobPhase::kRunning);
  job.claim(wish_of(1));
  job.give_ports();
  EXPECT_EQ(job.crew(0).generation.counter, 2U) << "generations go on";
  EXPECT_EQ(job.variable(0, "MONARCH_RESTART_CAUSE"), "unset") << "it begins anew";
}

TEST(Claims, AreLetGoBeforeAnythingRuns) {
  Slotted job;
  const ClaimId id = job.claim(wish_of(1));
  ASSERT_EQ(job.phase(0), GangPhase::kReserving);
  job.let_go(id);
  EXPECT_EQ(job.phase(0), GangPhase::kIdle);
  job.give_ports();
  EXPECT_EQ(job.phase(0), GangPhase::kIdle) << "an answer to who is gone starts nothing";
}

TEST(Claims, ASlotThatIsSpentDecidesNothingAndIsGivenUpUntilItIsLetGo) {
  Slotted job;
  const ClaimId id = job.claim(wish_of(2));
  job.run(0);
  job.run(1);
  job.ended(0, fixtures::killed(9));
  EXPECT_EQ(job.phase(0), GangPhase::kFailed);
  EXPECT_EQ(job.phase(1), GangPhase::kRunning);
  EXPECT_EQ(job.core.state().phase, JobPhase::kRunning);
  EXPECT_EQ(job.plan(wish_of(1))->claim.ranks, std::vector<Rank>{Rank(2)});
  job.let_go(id);
  EXPECT_EQ(job.phase(0), GangPhase::kIdle);
}

TEST(Claims, ASlotThatNeverWasReadyDecidesNothingEither) {
  Slotted job(0, false);
  job.claim(wish_of(1));
  job.give_ports();
  job.ended(0, {.kind = EndKind::kNotExecuted, .value = 2, .detail = "no such file"});
  EXPECT_EQ(job.phase(0), GangPhase::kFailed);
  EXPECT_EQ(job.core.state().phase, JobPhase::kRunning);
  job.report({MeshId(1), Rank(0)}, RankPhase::kEnded, fixtures::exited(0));
  EXPECT_EQ(job.core.state().verdict->exit_code, 0);
}

TEST(Claims, GoIntoEachGeneration) {
  Slotted job(3);
  SlotWish wish = wish_of(1);
  wish.env = {{"MINE", "yes"}};
  job.claim(wish);
  job.run(0);
  job.ended(0, fixtures::killed(9));
  job.pass_deadline();
  job.give_ports();
  EXPECT_EQ(job.crew(0).generation.counter, 2U);
  EXPECT_EQ(job.variable(0, "MINE"), "yes");
}

TEST(Claims, ThatAreLetGoWhileTheyFailAreNotStartedAgain) {
  Slotted job(3);
  const ClaimId id = job.claim(wish_of(1));
  job.run(0);
  job.ended(0, fixtures::killed(9));
  ASSERT_EQ(job.phase(0), GangPhase::kReserving);
  job.let_go(id);
  EXPECT_EQ(job.phase(0), GangPhase::kIdle);
  EXPECT_TRUE(job.gang(0).failures.empty());
}

TEST(Claims, AreFoundByWhatTheyWereAskedFor) {
  Slotted job;
  const ClaimId id = job.claim(wish_of(1));
  ASSERT_NE(claim_asked_for(job.core.facts(), kAlice, 1), nullptr);
  EXPECT_EQ(claim_asked_for(job.core.facts(), kAlice, 1)->id, id);
  EXPECT_EQ(claim_asked_for(job.core.facts(), kAlice, 2), nullptr);
  job.let_go(id);
  EXPECT_EQ(claim_asked_for(job.core.facts(), kAlice, 1), nullptr);
  job.let_go(id);  // said twice
}

TEST(Claims, FromAnotherHostBringNothingThatIsNotAllowed) {
  Slotted job;
  SlotWish wish = wish_of(1);
  wish.hosts = {"v2"};
  wish.env = {{"CUDA_VISIBLE_DEVICES", "3"}};
  EXPECT_EQ(job.refused(wish), "");
  wish.env["PYTHONPATH"] = "/tmp";
  EXPECT_EQ(job.refused(wish),
            "PYTHONPATH comes from another host: mesh procs takes it with `claims: {env: "
            "[PYTHONPATH]}`, or all with `trust: job`");
  wish.env.erase("PYTHONPATH");
  wish.program = {"sh"};
  EXPECT_EQ(job.refused(wish), "its program comes from another host: mesh procs takes it with `trust: job`");
  EXPECT_EQ(job.refused(wish, {HostId(1), ClaimOwner(1)}), "") << "its own host";
}

TEST(Claims, AreRefusedWithWhatWouldWork) {
  Slotted job;
  SlotWish wish = wish_of(1);
  wish.mesh = "prosc";
  EXPECT_EQ(job.refused(wish), "mesh prosc has no idle slots; did you mean procs?");
  wish.mesh.clear();
  wish.hosts = {"v3"};
  EXPECT_EQ(job.refused(wish), "the job has no host v3; it has v1, v2");
  wish.hosts = {"v1", "v1"};
  EXPECT_EQ(job.refused(wish), "it names v1 twice");
  wish.hosts.clear();
  wish.env = {{"MONARCH_RANK", "1"}};
  EXPECT_EQ(job.refused(wish), "MONARCH_RANK is set by monarch for each rank");
  wish.env.clear();
  wish.count = 4'097;
  EXPECT_EQ(job.refused(wish), "it wants 4097 slots, and 4096 are the most of one claim");
  wish.count = 1;
  wish.rank_env.resize(3);
  EXPECT_EQ(job.refused(wish), "it has variables for 3 ranks, and wants 1");
}

TEST(Claims, AHostThatIsLostTakesItsSlotsWithIt) {
  Slotted job;
  SlotWish wish = wish_of(1);
  wish.hosts = {"v2"};
  job.claim(wish);
  job.run(4);
  job.step(WorkerEnded{.host = HostId(1), .how = "killed by SIGKILL"});
  EXPECT_EQ(job.phase(4), GangPhase::kFailed);
  EXPECT_EQ(job.core.state().phase, JobPhase::kRunning);
  EXPECT_EQ(job.refused(wish),
            "it wants 1 slots of mesh procs on v2, and 0 of 4 are idle (the host serves nobody now): workers (1) has "
            "the others");
}

TEST(Claims, AreInTheRosterAsIdleAndAsWhatTheyAre) {
  Slotted job;
  const std::vector<PostPlace> posts(job.core.hosts().size());
  const auto runs = [&] {
    return make_roster({.spec = job.core.spec(),
                        .state = job.core.state(),
                        .placement = job.core.placement(),
                        .pool = job.core.hosts(),
                        .posts = posts,
                        .failures = {}})
        .runs;
  };
  ASSERT_EQ(runs().size(), 2U) << "a run for each host";
  EXPECT_EQ(runs()[0].state, RosterState::kIdle);
  job.claim(wish_of(1));
  EXPECT_EQ(runs()[0].state, RosterState::kStarting);
  EXPECT_EQ(runs()[1].state, RosterState::kIdle);
}

}  // namespace
}  // namespace monarch
