#include "supervisor/core/job/job_core.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "supervisor/launch/local/local_spec.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::exited;
using fixtures::job_of;
using fixtures::job_that_recovers;
using fixtures::killed;
using fixtures::killed_by_us;

TEST(JobCore, StartsRanksOnlyWhenAllHostsOfTheGangHaveJoinedAndThePortIsHeld) {
  Driver job(job_of(2, 2));
  job.begin();
  EXPECT_EQ(job.actions_of<LaunchWorker>().size(), 2U);
  job.join(0);
  EXPECT_TRUE(job.actions_of<SendReserve>().empty());
  job.join(1);
  EXPECT_EQ(job.actions_of<SendReserve>().size(), 1U);
  EXPECT_TRUE(job.actions_of<SendStart>().empty());
  job.give_ports();
  const auto starts = job.actions_of<SendStart>();
  ASSERT_EQ(starts.size(), 2U);
  const Start& start = std::get<SendStart>(starts[1]).message;
  EXPECT_EQ(start.ranks.size(), 2U);
  EXPECT_EQ(start.env.at("WORLD_SIZE"), "4");
  EXPECT_EQ(start.ranks[1].env.at("RANK"), "3");
  EXPECT_EQ(start.workdir, "/srv/job");
  EXPECT_EQ(start.generation, (Generation{Term(1), 1}));
}

TEST(JobCore, EndsWithZeroWhenEveryRankDid) {
  Driver job(job_of(2, 1));
  job.run_all();
  EXPECT_EQ(job.core.state().phase, JobPhase::kRunning);
  job.ended(0, exited(0));
  EXPECT_TRUE(job.actions_of<SendShutdown>().empty());
  job.ended(1, exited(0));
  EXPECT_EQ(job.actions_of<SendShutdown>().size(), 2U);
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_EQ(job.verdict()->exit_code, 0);
  EXPECT_EQ(job.verdict()->outcome, Outcome::kSucceeded);
}

TEST(JobCore, NamesTheRankThatExitedFirstAlsoWhenItsPeersDieOfIt) {
  Driver job(job_of(2, 2));
  job.run_all();
  const Instant first = job.now;
  job.ended(2, killed(6));  // aborts on the lost connection; its report is here first
  EXPECT_EQ(Driver::count<SendStop>(job.all), 2U);
  RankChanged cause{.host = HostId(0),
                    .report = job.report_of({MeshId(0), Rank(1)}, RankPhase::kEnded, exited(7)),
                    .ended_at = first - Duration::milliseconds(3),
                    .uncertainty = Duration::zero()};
  job.step(cause);
  job.ended(0, killed_by_us(9));
  job.ended(3, killed_by_us(9));
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_EQ(job.verdict()->exit_code, 7);
  EXPECT_EQ(job.verdict()->cause.rank, 1U);
  EXPECT_EQ(job.verdict()->cause.host, "v1");
  EXPECT_EQ(job.verdict()->cause.pid, 1001);
  EXPECT_EQ(job.verdict()->cause.secondary, 3U);
}

TEST(JobCore, StopsSurvivorsOfAFailedGangAtOnce) {
  Driver job(job_of(1, 2));
  job.run_all();
  const auto actions = job.ended(0, exited(1));
  ASSERT_EQ(Driver::count<SendStop>(actions), 1U);
  for (const Action& action : actions) {
    if (const auto* stop = std::get_if<SendStop>(&action)) {
      EXPECT_EQ(stop->message.grace, Duration::zero());
      EXPECT_EQ(stop->message.ranks.size(), 1U);
    }
  }
}

TEST(JobCore, DecidesTheCauseAfterTwoHundredMillisecondsIfTheGangDoesNotEmpty) {
  Driver job(job_of(1, 2));
  job.run_all();
  job.ended(0, killed(11));
  EXPECT_EQ(job.core.next_deadline() - job.now, Duration::milliseconds(200));
  job.pass_deadline();
  EXPECT_EQ(job.core.state().phase, JobPhase::kStopping);
  EXPECT_EQ(job.core.state().verdict->exit_code, 139);
}

TEST(JobCore, FailsFastAcrossGangsAndGivesOthersTheirGrace) {
  JobSpec spec = job_of(2, 1);
  spec.meshes[0].gang = {.scope = GangScope::kEach};
  Driver job(spec);
  job.run_all();
  const auto actions = job.ended(0, exited(3));
  bool told = false;
  for (const Action& action : actions) {
    if (const auto* stop = std::get_if<SendStop>(&action); stop != nullptr && stop->host == HostId(1)) {
      told = true;
      EXPECT_EQ(stop->message.grace, Duration::seconds(30));
      EXPECT_EQ(stop->message.signal, 15);
    }
  }
  EXPECT_TRUE(told);
  job.ended(1, exited(0));
  job.end_hosts();
  EXPECT_EQ(job.verdict()->exit_code, 3);
  EXPECT_EQ(job.verdict()->cause.gang, 0U);
  EXPECT_EQ(job.verdict()->cause.gang_rank, 0U);
}

TEST(JobCore, GivesTheCodeOfAShellForAMissingProgram) {
  Driver job(job_of(1, 1));
  job.begin();
  job.join(0);
  job.give_ports();
  job.ended(0, {.kind = EndKind::kNotExecuted, .value = ENOENT, .detail = "exec /bin/nonesuch"});
  job.end_hosts();
  EXPECT_EQ(job.verdict()->exit_code, 127);
  EXPECT_EQ(job.verdict()->cause.rule, "exec error: fail, no retry");
}

TEST(JobCore, SaysWhatToDoAboutAFolderThatOnlyThisMachineHas) {
  const auto summary = [](const JobSpec& spec, const std::string& folder) {
    Driver job(spec);
    job.begin();
    job.join(0);
    job.give_ports();
    job.ended(0, {.kind = EndKind::kNotExecuted, .value = ENOENT, .detail = "chdir " + folder});
    job.end_hosts();
    return job.verdict()->cause.summary;
  };
  const std::string plain = "could not be executed: chdir /srv/job: No such file or directory";
  JobSpec spec = job_of(1, 1);
  EXPECT_EQ(summary(spec, "/srv/job"), plain) << "a virtual host has it, or had it";
  spec.launch = LaunchSsh{.hosts = {SshHost{.name = "n1"}}};
  EXPECT_EQ(
      summary(spec, "/srv/job"),
      plain +
          "; it is a folder of the machine that started the job: `workspace: {path: .}` gives each host a copy, or "
          "`workdir` names a folder of the hosts");
  spec.meshes[0].workdir = "sub";
  EXPECT_NE(summary(spec, "/srv/job/sub").find("`workspace:"), std::string::npos);
  EXPECT_EQ(summary(spec, "/elsewhere").find("`workspace:"), std::string::npos);
  spec.meshes[0].workdir = "/srv/job";
  EXPECT_EQ(summary(spec, "/srv/job"), plain) << "it is named as one of the hosts";
  spec.meshes[0].workdir.reset();
  spec.workspace = WorkspaceSpec{};
  EXPECT_EQ(summary(spec, "."), "could not be executed: chdir .: No such file or directory");
}

TEST(JobCore, BlamesTheHostWhenItIsLostAndItsPeersAbort) {
  Driver job(job_of(2, 1));
  job.run_all();
  job.ended(1, killed(6));
  job.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL", .orderly = false});
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_EQ(job.verdict()->exit_code, 92);
  EXPECT_EQ(job.verdict()->cause.kind, CauseKind::kHost);
  EXPECT_EQ(job.verdict()->cause.host, "v1");
}

TEST(JobCore, FailsByTheHostWhoseWorkerEndedItsRanksByItself) {
  Driver job(job_of(2, 1));
  job.run_all();
  job.ended(1, killed_by_us(9));  // at the end of its lease; nobody here had ordered it
  job.ended(0, killed_by_us(9));
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_EQ(job.verdict()->exit_code, 92);
  EXPECT_EQ(job.verdict()->cause.kind, CauseKind::kHost);
  EXPECT_EQ(job.verdict()->cause.host, "v2");
}

TEST(JobCore, FailsByTheHostOnWhichARankCannotBeKilled) {
  Driver job(job_of(1, 2));
  job.run_all();
  job.ended(0, exited(0));
  job.report({MeshId(0), Rank(1)}, RankPhase::kWedged);  // killed by its worker, and still there
  job.pass_deadline();                                   // its output will never be complete
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_EQ(job.verdict()->exit_code, 92);
  EXPECT_EQ(job.verdict()->cause.kind, CauseKind::kHost);
  EXPECT_EQ(job.verdict()->left_behind, std::vector<std::string>{"v1"});
}

TEST(JobCore, DestroysASilentHostAndNamesItWhenItsEndIsNotProven) {
  Driver job(job_of(2, 1));
  job.run_all();
  const auto actions = job.step(HostSilent{.host = HostId(1), .silence = Duration::seconds(5)});
  EXPECT_EQ(Driver::count<DestroyWorker>(actions), 1U);
  job.ended(0, killed_by_us(9));
  while (job.core.state().phase != JobPhase::kEnded) {
    if (job.host(0).phase == HostPhase::kJoined && job.host(0).shutdown_told) {
      job.step(WorkerEnded{.host = HostId(0), .how = "exit code 0", .orderly = true});
      continue;
    }
    ASSERT_NE(job.core.next_deadline(), Instant::never());
    job.pass_deadline();
  }
  EXPECT_EQ(job.verdict()->exit_code, 92);
  EXPECT_EQ(job.verdict()->left_behind, std::vector<std::string>{"v2"});
  EXPECT_EQ(job.verdict()->cause.summary, "host v2 was lost: silent for 5s");
}

TEST(JobCore, WaitsForAHostAtTheEndAsLongAsTheMemoryOfItsVaultMayTake) {
  for (const std::uint64_t gib : {0U, 64U}) {
    JobSpec spec = job_of(1, 1);
    spec.checkpoints.memory = gib << 30U;
    Driver job(spec);
    job.run_all();
    job.ended(0, exited(0));
    ASSERT_TRUE(job.host(0).shutdown_told);
    EXPECT_EQ(job.host(0).deadline, job.now + Duration::seconds(gib == 0 ? 10 : 42));
  }
}

TEST(JobCore, GrantsNothingToAHostThatItDestroysAndTellsItSoWhenItIsHeardAgain) {
  Driver job(job_of(2, 1));
  job.run_all();
  job.step(HostSilent{.host = HostId(1), .silence = Duration::seconds(5)});
  EXPECT_FALSE(state_parts::is_granted(job.core, {{MeshId(0), Rank(1)}, {Term(1), 1}}));
  const auto missing = job.core.outstanding(HostId(1), {job.report_of({MeshId(0), Rank(1)}, RankPhase::kRunning)});
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<SendShutdown>(missing[0]));
}

TEST(JobCore, IsNotConcernedByRanksOfOtherHostsAndGenerations) {
  Driver job(job_of(2, 1));
  job.run_all();
  RankReport report = job.report_of({MeshId(0), Rank(1)}, RankPhase::kRunning);
  EXPECT_TRUE(judge(job.core.facts(), HostId(1), report).counts());
  EXPECT_FALSE(judge(job.core.facts(), HostId(0), report).counts());
  report.process.generation.counter += 1;
  EXPECT_FALSE(judge(job.core.facts(), HostId(1), report).counts());
  report.process.rank = {MeshId(7), Rank(1)};
  EXPECT_FALSE(judge(job.core.facts(), HostId(1), report).counts());
  report.process.rank = {MeshId(0), Rank(4'000'000'000)};
  EXPECT_FALSE(judge(job.core.facts(), HostId(1), report).counts());
  EXPECT_FALSE(job.core.awaits(HostId(0), {.mesh = MeshId(0), .gang = GangId(0), .generation = {Term(1), 1}}));
}

// Found by monarch-sim, seed 20957 of the theme hostile: with it the next generation began beside the one before.
TEST(JobCore, IsNotConcernedByWhatAHostSaysOfAGenerationThatRanBeforeItHadTheSlot) {
  JobSpec spec = job_that_recovers(2, 1, 4, 4);
  spec.launch = LaunchLocal{.hosts = 3, .spares = 1};
  Driver job(spec);
  job.begin();
  for (std::uint32_t host = 0; host < 3; ++host) job.join(host);
  job.start_again(0);
  job.start_again(1);
  const RankId first{MeshId(0), Rank(0)};
  job.step(
      HostSilent{.host = HostId(0), .silence = Duration::seconds(5), .grants_until = job.now + Duration::seconds(60)});
  ASSERT_EQ(job.core.placement().host_of(first), HostId(2));
  ASSERT_EQ(job.gang(0).phase, GangPhase::kWaiting);
  EXPECT_FALSE(judge(job.core.facts(), HostId(2), job.report_of(first, RankPhase::kEnded, exited(0))).counts());
  job.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  job.start_again(0);
  EXPECT_TRUE(judge(job.core.facts(), HostId(2), job.report_of(first, RankPhase::kEnded, exited(0))).counts());
}

TEST(JobCore, SaysThatAHostIsSuspectedAndStopsNothing) {
  Driver job(job_of(1, 1));
  job.run_all();
  auto actions = job.step(HostDoubted{.host = HostId(0), .silence = Duration::seconds(3)});
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(std::get<EmitEvent>(actions[0]).event.kind, EventKind::kHostSuspect);
  actions = job.step(HostDoubted{.host = HostId(0), .heard_again = true});
  EXPECT_EQ(std::get<EmitEvent>(actions[0]).event.kind, EventKind::kHostHeard);
  EXPECT_EQ(job.core.state().phase, JobPhase::kRunning);
}

TEST(JobCore, FailsWithTheNamesOfWhoIsMissingWhenStartingTakesTooLong) {
  Driver job(job_of(2, 1));
  job.begin();
  job.join(0);
  job.pass_deadline();  // of the launch
  job.pass_deadline();
  EXPECT_EQ(job.core.state().verdict->exit_code, 69);
  EXPECT_NE(job.core.state().verdict->reason.find("v2 (its worker has not started)"), std::string::npos)
      << job.core.state().verdict->reason;
}

TEST(JobCore, StopsInOrderAndKillsOnTheSecondRequest) {
  Driver job(job_of(1, 1));
  job.run_all();
  job.step(StopOrdered{.request = {.who = "test"}});
  EXPECT_EQ(std::get<SendStop>(job.actions_of<SendStop>()[0]).message.grace, Duration::seconds(30));
  job.step(StopOrdered{.request = {.how = StopHow::kKill, .who = "test"}});
  ASSERT_EQ(job.actions_of<SendStop>().size(), 2U);
  EXPECT_EQ(std::get<SendStop>(job.actions_of<SendStop>()[1]).message.grace, Duration::zero());
  job.ended(0, killed_by_us(9));
  job.end_hosts();
  EXPECT_EQ(job.verdict()->exit_code, 143);
  EXPECT_EQ(job.verdict()->outcome, Outcome::kStopped);
}

TEST(JobCore, EndsWith130WhenItsOwnRunWasInterrupted) {
  Driver job(job_of(1, 1));
  job.run_all();
  job.step(StopOrdered{.request = {.interrupted = true, .who = "Ctrl-C"}});
  job.ended(0, exited(0));
  job.end_hosts();
  EXPECT_EQ(job.verdict()->exit_code, 130);
  EXPECT_EQ(job.verdict()->outcome, Outcome::kInterrupted);
}

TEST(JobCore, EndsWith0OnceWhoItWasForNeedsItNoMore) {
  Driver job(job_of(1, 1));
  job.run_all();
  job.step(StopOrdered{.request = {.how = StopHow::kOver, .who = "its program ended"}});
  EXPECT_EQ(std::get<SendStop>(job.actions_of<SendStop>()[0]).message.grace, Duration::seconds(30));
  EXPECT_EQ(job.told(EventKind::kJobStopping), std::vector<std::string>{"stopping: its program ended"});
  job.ended(0, killed_by_us(15));
  job.end_hosts();
  EXPECT_EQ(job.verdict()->exit_code, 0);
  EXPECT_EQ(job.verdict()->outcome, Outcome::kStopped);
  EXPECT_EQ(job.verdict()->reason, "its program ended");
}

TEST(JobCore, CanBeStoppedBeforeAnyHostHasJoined) {
  Driver job(job_of(2, 1));
  job.begin();
  const auto actions = job.step(StopOrdered{.request = {.who = "test"}});
  EXPECT_EQ(Driver::count<DestroyWorker>(actions), 2U);
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_EQ(job.verdict()->exit_code, 143);
}

TEST(JobCore, DropsReportsOfOtherGenerations) {
  Driver job(job_of(1, 1));
  job.run_all();
  RankReport stale = job.report_of({MeshId(0), Rank(0)}, RankPhase::kEnded, exited(9));
  stale.process.generation = {Term(1), 99};
  job.step(RankChanged{.host = HostId(0), .report = stale, .ended_at = job.now, .uncertainty = {}});
  EXPECT_EQ(job.core.state().phase, JobPhase::kRunning);
}

TEST(JobCore, GrantsLeasesToWhatItWantsAndToNothingElse) {
  Driver job(job_of(1, 2));
  const RankId rank{MeshId(0), Rank(0)};
  job.run_all();
  EXPECT_TRUE(state_parts::is_granted(job.core, {rank, {Term(1), 1}}));
  EXPECT_FALSE(state_parts::is_granted(job.core, {rank, {Term(1), 2}}));
  EXPECT_FALSE(state_parts::is_granted(job.core, {{MeshId(3), Rank(0)}, {Term(1), 1}}));
  job.ended(0, exited(0));
  EXPECT_FALSE(state_parts::is_granted(job.core, {rank, {Term(1), 1}}));
}

TEST(JobCore, SaysAgainWhatABeatShowsToBeLost) {
  Driver job(job_of(1, 1));
  job.begin();
  job.join(0);
  auto missing = job.core.outstanding(HostId(0), {});
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<SendReserve>(missing[0]));
  job.give_ports();
  missing = job.core.outstanding(HostId(0), {});
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<SendStart>(missing[0]));
  const RankReport running = job.report_of({MeshId(0), Rank(0)}, RankPhase::kRunning);
  EXPECT_TRUE(job.core.outstanding(HostId(0), {running}).empty());
  job.report({MeshId(0), Rank(0)}, RankPhase::kRunning);
  job.step(StopOrdered{.request = {.who = "test"}});
  missing = job.core.outstanding(HostId(0), {running});
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<SendStop>(missing[0]));
}

TEST(JobCore, KillsWhatRunsAtAGenerationThatNobodyWants) {
  Driver job(job_of(1, 1));
  job.run_all();
  RankReport stray = job.report_of({MeshId(0), Rank(0)}, RankPhase::kRunning);
  stray.process.generation = {Term(0), 4};
  const auto actions = job.core.outstanding(HostId(0), {stray});
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(std::get<SendStop>(actions[0]).message.grace, Duration::zero());
}

TEST(JobCore, KeepsTheFirstVerdictAcrossACrash) {
  Driver job(job_of(1, 2));
  job.run_all();
  job.ended(0, exited(7));
  job.pass_deadline();
  job.step(SupervisorReturned{.term = Term(2)});
  job.ended(1, killed_by_us(9));
  job.end_hosts();
  EXPECT_EQ(job.verdict()->exit_code, 7);
}

TEST(JobCore, StartsNoSpareButLaunchesIt) {
  JobSpec spec = job_of(1, 1);
  spec.launch = LaunchLocal{.spares = 1};
  Driver job(spec);
  job.run_all();
  EXPECT_EQ(job.actions_of<LaunchWorker>().size(), 2U);
  EXPECT_FALSE(job.core.placement().holds_ranks(HostId(1)));
  EXPECT_EQ(job.core.state().phase, JobPhase::kRunning);
}

}  // namespace
}  // namespace monarch
