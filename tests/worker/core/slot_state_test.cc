#include "worker/core/slot_state.h"

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace monarch {
namespace {

using keeper_action::CheckTree;
using keeper_action::FreezeTree;
using keeper_action::KillTree;
using keeper_action::OpenGate;
using keeper_action::Reap;
using keeper_action::Report;
using keeper_action::SignalGroup;
using keeper_action::TellRank;
using keeper_action::ThawTree;

Instant at(std::int64_t milliseconds) { return Instant::since_boot(Duration::milliseconds(milliseconds)); }

const Incarnation kKey{RankId{MeshId(0), Rank(3)}, Generation{Term(1), 1}};

struct Name {
  std::string operator()(const OpenGate&) const { return "open"; }
  std::string operator()(const SignalGroup& a) const { return "signal" + std::to_string(a.number); }
  std::string operator()(const FreezeTree&) const { return "freeze"; }
  std::string operator()(const ThawTree&) const { return "thaw"; }
  std::string operator()(const KillTree&) const { return "kill"; }
  std::string operator()(const CheckTree&) const { return "check"; }
  std::string operator()(const Reap&) const { return "reap"; }
  std::string operator()(const Report& a) const {
    static const std::vector<std::string> names = {"gated", "running", "stopping", "wedged", "ended"};
    return names[static_cast<std::size_t>(a.report.phase)] + (a.report.held ? "+held" : "");
  }
  std::string operator()(const auto&) const { return "?"; }
};

// What was ordered, in short: "freeze report(running,held)".
std::string told(const KeeperActions& actions) {
  std::string all;
  for (const KeeperAction& action : actions) {
    if (std::holds_alternative<TellRank>(action)) continue;  // see events()
    all += (all.empty() ? "" : " ") + std::visit(Name{}, action);
  }
  return all;
}

// One incarnation and a clock, driven event by event. Each call answers what the state ordered.
class Driver {
 public:
  explicit Driver(OrphanAction orphan = OrphanAction::kHold)
      : state_({.key = kKey,
                .gated = true,
                .mesh = MeshId(0),
                .gang = GangId(0),
                .orphan = orphan,
                .orphan_ttl = Duration::seconds(60),
                .stop_signal = SIGTERM,
                .stop_grace = Duration::seconds(30)},
               at(0)) {}

  std::string advance_to(std::int64_t milliseconds) {
    now_ = at(milliseconds);
    KeeperActions actions;
    state_.enforce_lease(now_, actions);
    state_.tick(now_, actions);
    return told(actions);
  }
  std::string forked() {
    return run([&](KeeperActions& out) { state_.forked(42, now_, out); });
  }
  std::string fork_failed() {
    return run([&](KeeperActions& out) { state_.fork_failed({kKey, EAGAIN, "fork"}, now_, out); });
  }
  std::string executed() {
    return run([&](KeeperActions& out) { state_.executed(out); });
  }
  std::string exec_failed() {
    return run([&](KeeperActions&) { state_.exec_failed({kKey, ENOENT, "exec /nonesuch"}); });
  }
  std::string exited(EndKind kind = EndKind::kExited, int value = 0) {
    RankEnd end;
    end.kind = kind;
    end.value = value;
    return run([&](KeeperActions& out) { state_.exited(end, now_, out); });
  }
  std::string tree_empty() {
    return run([&](KeeperActions& out) { state_.tree_empty(out); });
  }
  std::string tree_busy() {
    return run([&](KeeperActions& out) { state_.tree_busy(now_, out); });
  }
  std::string lease_until(std::int64_t milliseconds) {
    return run([&](KeeperActions& out) { state_.lease(at(milliseconds), now_, out); });
  }
  std::string stop(Duration grace) {
    return run([&](KeeperActions& out) { state_.stop({SIGTERM, grace}, now_, out); });
  }
  std::string signal(int number) {
    return run([&](KeeperActions& out) { state_.signal(number, out); });
  }
  std::string await_end() {
    return run([&](KeeperActions& out) { state_.await_end(Duration::seconds(2), now_, out); });
  }

  void to_running() {
    forked();
    lease_until(6'000);
    executed();
  }
  SlotState& state() { return state_; }

 private:
  std::string run(const std::function<void(KeeperActions&)>& event) {
    KeeperActions actions;
    event(actions);
    return told(actions);
  }
  SlotState state_;
  Instant now_ = at(0);
};

constexpr Duration kGrace = Duration::seconds(10);

// Brings a new incarnation into the phase.
Driver in(SlotPhase phase) {
  Driver driver;
  switch (phase) {
    case SlotPhase::kForking: break;
    case SlotPhase::kGated: driver.forked(); break;
    case SlotPhase::kStarting:
      driver.forked();
      driver.lease_until(6'000);
      break;
    case SlotPhase::kRunning: driver.to_running(); break;
    case SlotPhase::kHeld:
      driver.to_running();
      driver.advance_to(6'000);
      break;
    case SlotPhase::kGrace:
      driver.to_running();
      driver.stop(kGrace);
      break;
    case SlotPhase::kKilling:
      driver.to_running();
      driver.stop(Duration::zero());
      break;
    case SlotPhase::kWedged:
      driver.to_running();
      driver.stop(Duration::zero());
      driver.advance_to(2'000);
      break;
    case SlotPhase::kEnded:
      driver.to_running();
      driver.exited();
      driver.tree_empty();
      break;
  }
  EXPECT_EQ(driver.state().phase(), phase);
  return driver;
}

struct Row {
  SlotPhase from;
  const char* event;
  const char* ordered;
  SlotPhase to;
};

std::string apply(Driver& driver, const std::string& event) {
  if (event == "executed") return driver.executed();
  if (event == "exec_failed") return driver.exec_failed();
  if (event == "exited") return driver.exited();
  if (event == "tree_empty") return driver.tree_empty();
  if (event == "tree_busy") return driver.tree_busy();
  if (event == "lease") return driver.lease_until(9'000);
  if (event == "stop") return driver.stop(kGrace);
  if (event == "kill") return driver.stop(Duration::zero());
  if (event == "signal") return driver.signal(SIGUSR1);
  if (event == "await") return driver.await_end();
  ADD_FAILURE() << "no event " << event;
  return "";
}

using P = SlotPhase;

// Every phase against every event but those of the fork, which have tests of their own.
const std::vector<Row> kTable = {
    {P::kForking, "executed", "", P::kForking},
    {P::kForking, "exec_failed", "", P::kForking},
    {P::kForking, "tree_empty", "", P::kForking},
    {P::kForking, "tree_busy", "", P::kForking},
    {P::kForking, "lease", "", P::kForking},
    {P::kForking, "stop", "", P::kForking},
    {P::kForking, "kill", "", P::kForking},
    {P::kForking, "signal", "", P::kForking},
    {P::kForking, "await", "", P::kForking},
    {P::kGated, "executed", "", P::kGated},
    {P::kGated, "exec_failed", "", P::kGated},
    {P::kGated, "exited", "kill check", P::kKilling},
    {P::kGated, "tree_empty", "", P::kGated},
    {P::kGated, "tree_busy", "", P::kGated},
    {P::kGated, "lease", "open", P::kStarting},
    {P::kGated, "stop", "kill stopping", P::kKilling},
    {P::kGated, "kill", "kill stopping", P::kKilling},
    {P::kGated, "signal", "", P::kGated},
    {P::kGated, "await", "kill stopping", P::kKilling},
    {P::kStarting, "executed", "running", P::kRunning},
    {P::kStarting, "exec_failed", "", P::kStarting},
    {P::kStarting, "exited", "kill check", P::kKilling},
    {P::kStarting, "tree_empty", "", P::kStarting},
    {P::kStarting, "tree_busy", "", P::kStarting},
    {P::kStarting, "lease", "", P::kStarting},
    {P::kStarting, "stop", "signal18 signal15 stopping", P::kGrace},
    {P::kStarting, "kill", "kill stopping", P::kKilling},
    {P::kStarting, "signal", "", P::kStarting},
    {P::kStarting, "await", "stopping", P::kGrace},
    {P::kRunning, "executed", "", P::kRunning},
    {P::kRunning, "exec_failed", "", P::kRunning},
    {P::kRunning, "exited", "kill check", P::kKilling},
    {P::kRunning, "tree_empty", "", P::kRunning},
    {P::kRunning, "tree_busy", "", P::kRunning},
    {P::kRunning, "lease", "", P::kRunning},
    {P::kRunning, "stop", "signal18 signal15 stopping", P::kGrace},
    {P::kRunning, "kill", "kill stopping", P::kKilling},
    {P::kRunning, "signal", "signal10", P::kRunning},
    {P::kRunning, "await", "stopping", P::kGrace},
    {P::kHeld, "executed", "", P::kHeld},
    {P::kHeld, "exec_failed", "", P::kHeld},
    {P::kHeld, "exited", "kill check", P::kKilling},
    {P::kHeld, "tree_empty", "", P::kHeld},
    {P::kHeld, "tree_busy", "", P::kHeld},
    {P::kHeld, "lease", "thaw running", P::kRunning},
    {P::kHeld, "stop", "kill stopping", P::kKilling},
    {P::kHeld, "kill", "kill stopping", P::kKilling},
    {P::kHeld, "signal", "", P::kHeld},
    {P::kHeld, "await", "kill stopping", P::kKilling},
    {P::kGrace, "executed", "", P::kGrace},
    {P::kGrace, "exec_failed", "", P::kGrace},
    {P::kGrace, "exited", "check", P::kGrace},
    {P::kGrace, "tree_empty", "", P::kGrace},
    {P::kGrace, "tree_busy", "", P::kGrace},
    {P::kGrace, "lease", "", P::kGrace},
    {P::kGrace, "stop", "", P::kGrace},
    {P::kGrace, "kill", "kill stopping", P::kKilling},
    {P::kGrace, "signal", "signal10", P::kGrace},
    {P::kGrace, "await", "", P::kGrace},
    {P::kKilling, "executed", "", P::kKilling},
    {P::kKilling, "exec_failed", "", P::kKilling},
    {P::kKilling, "exited", "check", P::kKilling},
    {P::kKilling, "tree_empty", "", P::kKilling},
    {P::kKilling, "tree_busy", "", P::kKilling},
    {P::kKilling, "lease", "", P::kKilling},
    {P::kKilling, "stop", "", P::kKilling},
    {P::kKilling, "kill", "", P::kKilling},
    {P::kKilling, "signal", "", P::kKilling},
    {P::kKilling, "await", "", P::kKilling},
    {P::kWedged, "executed", "", P::kWedged},
    {P::kWedged, "exec_failed", "", P::kWedged},
    {P::kWedged, "exited", "check", P::kWedged},
    {P::kWedged, "tree_empty", "", P::kWedged},
    {P::kWedged, "tree_busy", "", P::kWedged},
    {P::kWedged, "lease", "", P::kWedged},
    {P::kWedged, "stop", "", P::kWedged},
    {P::kWedged, "kill", "", P::kWedged},
    {P::kWedged, "signal", "", P::kWedged},
    {P::kWedged, "await", "", P::kWedged},
    {P::kEnded, "executed", "", P::kEnded},
    {P::kEnded, "exec_failed", "", P::kEnded},
    {P::kEnded, "exited", "", P::kEnded},
    {P::kEnded, "tree_empty", "", P::kEnded},
    {P::kEnded, "tree_busy", "", P::kEnded},
    {P::kEnded, "lease", "", P::kEnded},
    {P::kEnded, "stop", "", P::kEnded},
    {P::kEnded, "kill", "", P::kEnded},
    {P::kEnded, "signal", "", P::kEnded},
    {P::kEnded, "await", "", P::kEnded},
};

TEST(SlotState, AnswersEveryEventInEveryPhase) {
  for (const Row& row : kTable) {
    Driver driver = in(row.from);
    EXPECT_EQ(apply(driver, row.event), row.ordered) << "phase " << int(row.from) << ", event " << row.event;
    EXPECT_EQ(driver.state().phase(), row.to) << "phase " << int(row.from) << ", event " << row.event;
  }
}

TEST(SlotState, OpensTheGateAtTheFirstLeaseAndNotBefore) {
  Driver driver;
  EXPECT_EQ(driver.forked(), "gated");
  driver.advance_to(1'000);
  EXPECT_EQ(driver.lease_until(1'000), "") << "a lease that is over opens nothing";
  EXPECT_EQ(driver.lease_until(7'000), "open");
  EXPECT_EQ(driver.executed(), "running");
}

TEST(SlotState, OpensTheGateAtOnceWhenTheLeaseCameBeforeTheFork) {
  Driver driver;
  driver.lease_until(6'000);
  EXPECT_EQ(driver.forked(), "gated open");
}

TEST(SlotState, IsKilledAtTheForkWhenItsStopCameBefore) {
  Driver driver;
  driver.stop(kGrace);
  EXPECT_EQ(driver.forked(), "kill stopping");
}

TEST(SlotState, EndsWhenItCannotBeForked) {
  Driver driver;
  EXPECT_EQ(driver.fork_failed(), "reap ended");
  EXPECT_EQ(driver.state().report().end.kind, EndKind::kNotExecuted);
  EXPECT_EQ(driver.state().report().end.value, EAGAIN);
}

TEST(SlotState, KeepsTheExecErrorAndNotTheExitOfTheChildThatToldIt) {
  Driver driver = in(SlotPhase::kStarting);
  driver.exec_failed();
  driver.exited(EndKind::kExited, 127);
  EXPECT_EQ(driver.tree_empty(), "reap ended");
  const RankEnd end = driver.state().report().end;
  EXPECT_EQ(end.kind, EndKind::kNotExecuted);
  EXPECT_EQ(end.value, ENOENT);
  EXPECT_EQ(end.detail, "exec /nonesuch");
}

TEST(SlotState, EndsOnlyWhenItsTreeIsEmpty) {
  Driver driver = in(SlotPhase::kRunning);
  EXPECT_EQ(driver.exited(EndKind::kSignaled, SIGSEGV), "kill check");
  EXPECT_EQ(driver.tree_busy(), "kill stopping");
  EXPECT_EQ(driver.advance_to(5), "check");
  EXPECT_EQ(driver.tree_busy(), "kill");
  EXPECT_EQ(driver.advance_to(15), "check");
  EXPECT_EQ(driver.tree_empty(), "reap ended");
  const RankReport report = driver.state().report();
  EXPECT_EQ(report.end.value, SIGSEGV);
  EXPECT_FALSE(report.end.after_our_signal);
  EXPECT_EQ(report.ended_at, at(0));
}

TEST(SlotState, IsWedgedWhenTheKillDoesNotEmptyItAndEndsWhenItDoesAtLast) {
  Driver driver = in(SlotPhase::kRunning);
  driver.stop(Duration::zero());
  EXPECT_EQ(driver.advance_to(1'999), "");
  EXPECT_EQ(driver.advance_to(2'000), "wedged");
  EXPECT_EQ(driver.exited(EndKind::kSignaled, SIGKILL), "check");
  EXPECT_EQ(driver.tree_empty(), "reap ended");
  EXPECT_TRUE(driver.state().report().end.after_our_signal);
}

// The three children of a stop: each has its whole grace, whatever the others do.
TEST(SlotState, StopsAQuickChildAtItsExit) {
  Driver driver = in(SlotPhase::kGrace);
  driver.advance_to(10);
  EXPECT_EQ(driver.exited(EndKind::kSignaled, SIGTERM), "check");
  EXPECT_EQ(driver.tree_empty(), "reap ended");
  EXPECT_TRUE(driver.state().report().end.after_our_signal);
}

TEST(SlotState, GivesASlowChildItsWholeGrace) {
  Driver driver = in(SlotPhase::kGrace);
  driver.lease_until(20'000);
  EXPECT_EQ(driver.advance_to(9'999), "");
  EXPECT_EQ(driver.exited(), "check");
  EXPECT_EQ(driver.tree_empty(), "reap ended");
}

TEST(SlotState, KillsADeafChildAtTheEndOfItsGrace) {
  Driver driver = in(SlotPhase::kGrace);
  driver.lease_until(20'000);
  EXPECT_EQ(driver.advance_to(9'999), "");
  EXPECT_EQ(driver.advance_to(10'000), "kill stopping");
}

TEST(SlotState, LeavesTheChildrenOfAQuickLeaderTheRestOfTheGrace) {
  Driver driver = in(SlotPhase::kGrace);
  driver.lease_until(20'000);
  EXPECT_EQ(driver.exited(), "check");
  EXPECT_EQ(driver.tree_busy(), "stopping");
  EXPECT_EQ(driver.advance_to(5), "check");
  EXPECT_EQ(driver.tree_busy(), "");
  EXPECT_EQ(driver.advance_to(9'999), "check");
  EXPECT_EQ(driver.advance_to(10'000), "kill stopping check");
}

TEST(SlotState, ARepeatedStopChangesNothingAndAnImpatientOneShortensTheGrace) {
  Driver driver = in(SlotPhase::kGrace);
  driver.lease_until(20'000);
  driver.advance_to(5'000);
  driver.stop(kGrace);
  EXPECT_EQ(driver.state().next_due(), at(10'000));
  driver.stop(Duration::seconds(1));
  EXPECT_EQ(driver.state().next_due(), at(6'000));
}

TEST(SlotState, FreezesAtTheEndOfItsLeaseAndThawsWhenOneComesBack) {
  Driver driver = in(SlotPhase::kRunning);
  EXPECT_EQ(driver.advance_to(5'999), "");
  EXPECT_EQ(driver.advance_to(6'000), "freeze running+held");
  driver.advance_to(20'000);
  EXPECT_EQ(driver.lease_until(19'000), "") << "what is over brings nothing back";
  EXPECT_EQ(driver.lease_until(26'000), "thaw running");
  EXPECT_EQ(driver.advance_to(26'000), "freeze running+held");
}

TEST(SlotState, KillsWhatIsHeldWhenItsOrphanTimeIsOver) {
  Driver driver = in(SlotPhase::kHeld);  // last heard of a supervisor at 0
  EXPECT_EQ(driver.advance_to(59'999), "");
  EXPECT_EQ(driver.advance_to(60'000), "kill stopping");
}

TEST(SlotState, CountsWhatALongLeaseWaitedAgainstTheOrphanTime) {
  Driver driver;
  driver.forked();
  driver.lease_until(60'000);
  driver.executed();
  EXPECT_EQ(driver.advance_to(59'999), "");
  EXPECT_EQ(driver.advance_to(60'000), "kill stopping") << "a hold after it would wait twice";
}

TEST(SlotState, KillsAtTheEndOfItsLeaseWhereOrphansStop) {
  Driver driver(OrphanAction::kStop);
  driver.to_running();
  EXPECT_EQ(driver.advance_to(6'000), "kill stopping");
}

TEST(SlotState, RunsOnWhereOrphansRun) {
  Driver driver(OrphanAction::kRun);
  driver.to_running();
  EXPECT_EQ(driver.advance_to(1'000'000), "");
  EXPECT_EQ(driver.state().next_due(), Instant::never());
}

TEST(SlotState, IsKilledAtItsGateWhenNoLeaseEverComes) {
  for (const OrphanAction orphan : {OrphanAction::kHold, OrphanAction::kStop, OrphanAction::kRun}) {
    Driver driver(orphan);
    driver.forked();
    EXPECT_EQ(driver.advance_to(59'999), "");
    EXPECT_EQ(driver.advance_to(60'000), "kill stopping");
  }
}

TEST(SlotState, LosesTheRestOfItsGraceWithItsLease) {
  Driver driver = in(SlotPhase::kGrace);  // grace until 10 s, lease until 6 s
  EXPECT_EQ(driver.advance_to(6'000), "kill stopping");
}

TEST(SlotState, AShorterLeaseTakesNothingBack) {
  Driver driver = in(SlotPhase::kRunning);
  driver.lease_until(3'000);
  EXPECT_EQ(driver.advance_to(5'999), "");
}

}  // namespace
}  // namespace monarch
