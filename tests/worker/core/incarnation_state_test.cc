#include "worker/core/incarnation_state.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "tests/worker/core/incarnation_state_driver.h"

namespace monarch::incarnation_state_test {
namespace {

TEST(IncarnationState, OpensTheGateAtTheFirstLeaseAndNotBefore) {
  Driver driver;
  EXPECT_EQ(driver.forked(), "gated");
  driver.advance_to(1'000);
  EXPECT_EQ(driver.lease_until(1'000), "") << "a lease that is over opens nothing";
  EXPECT_EQ(driver.lease_until(7'000), "open");
  EXPECT_EQ(driver.executed(), "running");
}

TEST(IncarnationState, OpensTheGateAtOnceWhenTheLeaseCameBeforeTheFork) {
  Driver driver;
  driver.lease_until(6'000);
  EXPECT_EQ(driver.forked(), "gated open");
}

TEST(IncarnationState, IsKilledAtTheForkWhenItsStopCameBefore) {
  Driver driver;
  driver.stop(kGrace);
  EXPECT_EQ(driver.forked(), "kill stopping");
}

TEST(IncarnationState, EndsWhenItCannotBeForked) {
  Driver driver;
  EXPECT_EQ(driver.fork_failed(), "reap ended");
  EXPECT_EQ(driver.state().report().end.kind, EndKind::kNotExecuted);
  EXPECT_EQ(driver.state().report().end.value, EAGAIN);
}

TEST(IncarnationState, KeepsTheExecErrorAndNotTheExitOfTheChildThatToldIt) {
  Driver driver = in(IncarnationPhase::kStarting);
  driver.exec_failed();
  driver.exited(EndKind::kExited, 127);
  EXPECT_EQ(driver.tree_empty(), "reap ended");
  const RankEnd end = driver.state().report().end;
  EXPECT_EQ(end.kind, EndKind::kNotExecuted);
  EXPECT_EQ(end.value, ENOENT);
  EXPECT_EQ(end.detail, "exec /nonesuch");
}

TEST(IncarnationState, WasEndingBeforeASignalOfOursThatCameUponIt) {
  Driver driver = in(IncarnationPhase::kRunning);
  driver.advance_to(20);
  driver.ending();
  driver.advance_to(40);
  driver.stop(Duration::zero());
  driver.advance_to(300);
  driver.exited(EndKind::kExited, 7);
  driver.tree_empty();
  const RankReport report = driver.state().report();
  EXPECT_EQ(report.ended_at, at(20));
  EXPECT_FALSE(report.end.after_our_signal);
}

TEST(IncarnationState, EndsOnlyWhenItsTreeIsEmpty) {
  Driver driver = in(IncarnationPhase::kRunning);
  EXPECT_EQ(driver.exited(EndKind::kSignaled, SIGSEGV), "check");
  EXPECT_EQ(driver.tree_busy(), "stopping");
  EXPECT_EQ(driver.advance_to(250), "kill check");
  EXPECT_EQ(driver.tree_busy(), "kill") << "something was forked meanwhile";
  EXPECT_EQ(driver.advance_to(260), "check");
  EXPECT_EQ(driver.tree_empty(), "reap ended");
  const RankReport report = driver.state().report();
  EXPECT_EQ(report.end.value, SIGSEGV);
  EXPECT_FALSE(report.end.after_our_signal);
  EXPECT_EQ(report.ended_at, at(0));
}

TEST(IncarnationState, IsWedgedWhenTheKillDoesNotEmptyItAndEndsWhenItDoesAtLast) {
  Driver driver = in(IncarnationPhase::kRunning);
  driver.stop(Duration::zero());
  EXPECT_EQ(driver.advance_to(249), "");
  EXPECT_EQ(driver.advance_to(250), "kill") << "its own process does not die, and what else it has is not waited for";
  EXPECT_EQ(driver.advance_to(1'999), "");
  EXPECT_EQ(driver.advance_to(2'000), "wedged");
  EXPECT_EQ(driver.exited(EndKind::kSignaled, SIGKILL), "check");
  EXPECT_EQ(driver.tree_empty(), "reap ended");
  EXPECT_TRUE(driver.state().report().end.after_our_signal);
}

TEST(IncarnationState, CallsNoEndOfItsOwnDoingOutOfMemory) {
  for (const IncarnationPhase phase :
       {IncarnationPhase::kRunning, IncarnationPhase::kGrace, IncarnationPhase::kKilling}) {
    Driver driver = in(phase);
    driver.taken_by_oom_killer();
    EXPECT_EQ(driver.state().report().end.out_of_memory, phase != IncarnationPhase::kKilling)
        << static_cast<int>(phase);
  }
}

// The three children of a stop: each has its whole grace, whatever the others do.
TEST(IncarnationState, StopsAQuickChildAtItsExit) {
  Driver driver = in(IncarnationPhase::kGrace);
  driver.advance_to(10);
  EXPECT_EQ(driver.exited(EndKind::kSignaled, SIGTERM), "check");
  EXPECT_EQ(driver.tree_empty(), "reap ended");
  EXPECT_TRUE(driver.state().report().end.after_our_signal);
}

TEST(IncarnationState, GivesASlowChildItsWholeGrace) {
  Driver driver = in(IncarnationPhase::kGrace);
  driver.lease_until(20'000);
  EXPECT_EQ(driver.advance_to(9'999), "");
  EXPECT_EQ(driver.exited(), "check");
  EXPECT_EQ(driver.tree_empty(), "reap ended");
}

TEST(IncarnationState, KillsADeafChildAtTheEndOfItsGrace) {
  Driver driver = in(IncarnationPhase::kGrace);
  driver.lease_until(20'000);
  EXPECT_EQ(driver.advance_to(9'999), "");
  EXPECT_EQ(driver.advance_to(10'000), "kill_rank stopping");
}

// As Python's resource tracker does, which unlinks the shared memory of a process that was killed.
TEST(IncarnationState, LetsWhatOutlivesItsOwnProcessEndByItself) {
  Driver killed = in(IncarnationPhase::kKilling);
  killed.advance_to(3);
  EXPECT_EQ(killed.exited(EndKind::kSignaled, SIGKILL), "check");
  EXPECT_EQ(killed.tree_busy(), "stopping");
  EXPECT_EQ(killed.advance_to(8), "check");
  EXPECT_EQ(killed.tree_busy(), "") << "it has its moment";
  EXPECT_EQ(killed.state().next_due(), at(18));
  EXPECT_EQ(killed.advance_to(252), "check");
  EXPECT_EQ(killed.tree_busy(), "");
  EXPECT_EQ(killed.advance_to(253), "kill check") << "250 ms after the death of its own process, not more";

  Driver ended = in(IncarnationPhase::kRunning);
  ended.exited();
  ended.tree_busy();
  EXPECT_EQ(ended.advance_to(5), "check");
  EXPECT_EQ(ended.tree_empty(), "reap ended") << "over as soon as all have ended";
  EXPECT_EQ(ended.state().next_due(), Instant::never());
}

// One that signals reach alone.
Driver stopping_alone(SignalTo to) {
  Driver driver({.signal_to = to});
  driver.to_running();
  driver.lease_until(20'000);
  EXPECT_EQ(driver.stop(kGrace), "signal18 signal15 stopping");
  return driver;
}

TEST(IncarnationState, EndsWhatOutlivesItsOwnProcessWhereThatAloneWasToldToStop) {
  for (const SignalTo to : {SignalTo::kRank, SignalTo::kAuto}) {
    Driver driver = stopping_alone(to);
    driver.advance_to(1'000);
    EXPECT_EQ(driver.exited(), "check");
    EXPECT_EQ(driver.tree_busy(), "stopping");
    driver.advance_to(1'249);
    EXPECT_EQ(driver.advance_to(1'250), "kill check") << static_cast<int>(to);
  }
}

TEST(IncarnationState, LeavesTheRestOfTheGraceToWhatItsShellWaitsFor) {
  Driver driver = stopping_alone(SignalTo::kAuto);
  driver.state().group_told();
  EXPECT_EQ(driver.exited(EndKind::kSignaled, SIGTERM), "check");
  driver.tree_busy();
  EXPECT_EQ(driver.advance_to(9'999), "check");
  EXPECT_EQ(driver.advance_to(10'000), "kill stopping check");
}

TEST(IncarnationState, TellsAllThatItsSetupRunsToStop) {
  Driver driver({.signal_to = SignalTo::kRank});
  driver.forked();
  driver.lease_until(20'000);
  KeeperActions actions;
  driver.state().stop({SIGTERM, kGrace}, at(0), actions);
  for (const KeeperAction& action : actions) {
    const auto* signal = std::get_if<SignalRank>(&action);
    EXPECT_TRUE(signal == nullptr || signal->to == SignalTo::kGroup);
  }
}

TEST(IncarnationState, CountsTheMomentFromTheDeathOfWhatItsShellWaitedFor) {
  Driver driver = in(IncarnationPhase::kKilling);
  driver.exited(EndKind::kSignaled, SIGKILL);
  driver.advance_to(155);
  driver.tree_busy(true);
  EXPECT_EQ(driver.advance_to(404), "check");
  driver.tree_busy();
  EXPECT_EQ(driver.advance_to(405), "kill check") << "250 ms after it was seen to die";

  Driver stuck = in(IncarnationPhase::kKilling);
  stuck.exited(EndKind::kSignaled, SIGKILL);
  for (int now = 100; now < 1'000; now += 100) {
    stuck.advance_to(now);
    EXPECT_EQ(stuck.tree_busy(true).find("kill"), std::string::npos) << now;
  }
  EXPECT_EQ(stuck.advance_to(1'000), "kill check") << "it is not waited for longer";
}

TEST(IncarnationState, LetsNothingOfItRunOnAfterItsLease) {
  Driver driver = in(IncarnationPhase::kRunning);  // until 6 s
  driver.advance_to(5'900);
  EXPECT_EQ(driver.stop(Duration::zero()), "kill_rank stopping");
  driver.exited(EndKind::kSignaled, SIGKILL);
  driver.tree_busy();
  EXPECT_EQ(driver.advance_to(5'999), "check");
  EXPECT_EQ(driver.advance_to(6'000), "kill check");
  EXPECT_EQ(in(IncarnationPhase::kHeld).exited(EndKind::kSignaled, SIGKILL), "kill check")
      << "what is frozen puts nothing away";
}

TEST(IncarnationState, LeavesTheChildrenOfAQuickLeaderTheRestOfTheGrace) {
  Driver driver = in(IncarnationPhase::kGrace);
  driver.lease_until(20'000);
  EXPECT_EQ(driver.exited(), "check");
  EXPECT_EQ(driver.tree_busy(), "stopping");
  EXPECT_EQ(driver.advance_to(5), "check");
  EXPECT_EQ(driver.tree_busy(), "");
  EXPECT_EQ(driver.advance_to(9'999), "check");
  EXPECT_EQ(driver.advance_to(10'000), "kill stopping check");
}

TEST(IncarnationState, ARepeatedStopChangesNothingAndAnImpatientOneShortensTheGrace) {
  Driver driver = in(IncarnationPhase::kGrace);
  driver.lease_until(20'000);
  driver.advance_to(5'000);
  driver.stop(kGrace);
  EXPECT_EQ(driver.state().next_due(), at(10'000));
  driver.stop(Duration::seconds(1));
  EXPECT_EQ(driver.state().next_due(), at(6'000));
}

TEST(IncarnationState, FreezesAtTheEndOfItsLeaseAndThawsWhenOneComesBack) {
  Driver driver = in(IncarnationPhase::kRunning);
  EXPECT_EQ(driver.advance_to(5'999), "");
  EXPECT_EQ(driver.advance_to(6'000), "freeze running+held");
  driver.advance_to(20'000);
  EXPECT_EQ(driver.lease_until(19'000), "") << "what is over brings nothing back";
  EXPECT_EQ(driver.lease_until(26'000), "thaw running");
  EXPECT_EQ(driver.advance_to(26'000), "freeze running+held");
}

TEST(IncarnationState, KillsWhatIsHeldWhenItsOrphanTimeIsOver) {
  Driver driver = in(IncarnationPhase::kHeld);  // last heard of a supervisor at 0
  EXPECT_EQ(driver.advance_to(59'999), "");
  EXPECT_EQ(driver.advance_to(60'000), "kill stopping");
}

TEST(IncarnationState, CountsWhatALongLeaseWaitedAgainstTheOrphanTime) {
  Driver driver;
  driver.forked();
  driver.lease_until(60'000);
  driver.executed();
  EXPECT_EQ(driver.advance_to(59'999), "");
  EXPECT_EQ(driver.advance_to(60'000), "kill stopping") << "a hold after it would wait twice";
}

TEST(IncarnationState, KillsAtTheEndOfItsLeaseWhereOrphansStop) {
  Driver driver({.orphan = OrphanPolicy::kStop});
  driver.to_running();
  EXPECT_EQ(driver.advance_to(6'000), "kill stopping");
}

TEST(IncarnationState, RunsOnWhereOrphansRun) {
  Driver driver({.orphan = OrphanPolicy::kRun});
  driver.to_running();
  EXPECT_EQ(driver.advance_to(1'000'000), "");
  EXPECT_EQ(driver.state().next_due(), Instant::never());
}

TEST(IncarnationState, IsKilledAtItsGateWhenNoLeaseEverComes) {
  for (const OrphanPolicy orphan : {OrphanPolicy::kHold, OrphanPolicy::kStop, OrphanPolicy::kRun}) {
    Driver driver({.orphan = orphan});
    driver.forked();
    EXPECT_EQ(driver.advance_to(59'999), "");
    EXPECT_EQ(driver.advance_to(60'000), "kill stopping");
  }
}

TEST(IncarnationState, LosesTheRestOfItsGraceWithItsLease) {
  Driver driver = in(IncarnationPhase::kGrace);  // grace until 10 s, lease until 6 s
  EXPECT_EQ(driver.advance_to(6'000), "kill stopping");
}

TEST(IncarnationState, AShorterLeaseTakesNothingBack) {
  Driver driver = in(IncarnationPhase::kRunning);
  driver.lease_until(3'000);
  EXPECT_EQ(driver.advance_to(5'999), "");
}

}  // namespace
}  // namespace monarch::incarnation_state_test
