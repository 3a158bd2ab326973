#include "worker/core/daemon_core.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "transport/base/exit_code.h"

namespace monarch::daemon {
namespace {

constexpr Duration kLease = Duration::seconds(6);
constexpr Duration kOrphanTtl = Duration::seconds(60);
constexpr Duration kHearing = Duration::seconds(3);
const Generation kFirst{Term(3), 1};
const Generation kSecond{Term(3), 2};
const RankId kRank{MeshId(0), Rank(5)};

Instant at(double seconds) {
  return Instant::since_boot(Duration::milliseconds(static_cast<std::int64_t>(seconds * 1'000)));
}

JobUuid job(std::uint8_t number) {
  JobUuid uuid;
  uuid.bytes[0] = number;
  return uuid;
}

RankReport report(RankId rank, Generation generation, RankPhase phase) {
  RankReport told;
  told.process = {rank, generation};
  told.phase = phase;
  return told;
}

Ack ack_of(std::vector<Incarnation> granted) {
  Ack ack;
  ack.lease = kLease;
  ack.granted = std::move(granted);
  return ack;
}

// All actions of one kind, in order.
template <class Kind>
std::vector<Kind> only(const std::vector<Action>& actions) {
  std::vector<Kind> found;
  for (const Action& action : actions) {
    if (const auto* kind = std::get_if<Kind>(&action)) found.push_back(*kind);
  }
  return found;
}

template <class Message>
std::vector<Message> told(const std::vector<Action>& actions) {
  std::vector<Message> found;
  for (const TellKeeper& action : only<TellKeeper>(actions)) {
    if (const auto* message = std::get_if<Message>(&action.message)) found.push_back(*message);
  }
  return found;
}

// Orders of a kind that were passed on unopened.
std::size_t passed_on(std::uint16_t type, const std::vector<Action>& actions) {
  const auto orders = told<ForKeeper>(actions);
  return static_cast<std::size_t>(
      std::count_if(orders.begin(), orders.end(), [type](const ForKeeper& order) { return order.type == type; }));
}

class DaemonCoreTest : public testing::Test {
 protected:
  DaemonCoreTest()
      : core_(CoreOptions{.job = job(1), .promised = Term(3), .orphan_ttl = kOrphanTtl, .hearing = kHearing}) {
    core_.step(Started{Term(3)}, at(0));
  }

  // An order that the daemon passes on: the number stands for its kind.
  static ForKeeper order(std::uint16_t type) { return {.type = type, .payload = "an order"}; }
  template <class Message>
  std::vector<Action> hear(Term term, Message message, Instant now, std::optional<Instant> sent_at = std::nullopt) {
    return core_.step(FrameHeard{job(1), term, sent_at, std::move(message)}, now);
  }
  void run(Generation generation, Instant now = at(0)) {
    core_.step(RankTold{report(kRank, generation, RankPhase::kGated)}, now);
  }
  void end(Generation generation, Instant now) {
    core_.step(RankTold{report(kRank, generation, RankPhase::kEnded)}, now);
  }

  DaemonCore core_;
};

using Core = DaemonCoreTest;

TEST_F(Core, PassesOrdersOfThePromisedTermOnAtOnce) {
  EXPECT_EQ(told<Start>(hear(Term(3), Start{}, at(1))).size(), 1U);
  const auto passed = told<ForKeeper>(hear(Term(3), order(17), at(1)));
  ASSERT_EQ(passed.size(), 1U);
  EXPECT_EQ(passed[0].type, 17);
  EXPECT_EQ(passed[0].payload, "an order");
  EXPECT_EQ(told<KeeperShutdown>(hear(Term(3), Shutdown{}, at(1))).size(), 1U);
}

TEST_F(Core, TellsTheVaultWhatTheSupervisorSaysAndNotWhatOneThatWasReplacedSays) {
  const auto actions = hear(Term(3), VaultTable{.version = 5}, at(1));
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(std::get<VaultTable>(std::get<TellServant>(actions[0]).message).version, 5U);
  EXPECT_TRUE(hear(Term(2), VaultTable{.version = 4}, at(1)).empty());
}

TEST_F(Core, PassesNoAnswerToACommitOnFromASupervisorThatWasReplaced) {
  EXPECT_TRUE(hear(Term(2), order(28), at(1)).empty());
  EXPECT_EQ(core_.counters().lower_term, 1U);
}

TEST_F(Core, SaysAtOnceThatARankCommitsThoughItSpeaksOfItsProgressToo) {
  RankReport running = report(kRank, kFirst, RankPhase::kRunning);
  core_.step(RankTold{running}, at(0));
  running.progress.step = 12;
  EXPECT_FALSE(only<BeatChanged>(core_.step(RankTold{running}, at(1)))[0].at_once);
  running.progress.step = 13;
  running.commit = CommitRequest{.number = 1, .step = 13};
  EXPECT_TRUE(only<BeatChanged>(core_.step(RankTold{running}, at(2)))[0].at_once);
  EXPECT_EQ(core_.reports()[0].commit, running.commit);
}

TEST_F(Core, StartsNothingOnceItToldTheKeeperToShutDown) {
  hear(Term(3), Shutdown{}, at(1));
  EXPECT_TRUE(hear(Term(3), Start{}, at(2)).empty());
}

TEST_F(Core, DropsFramesOfALowerTerm) {
  EXPECT_TRUE(hear(Term(2), order(19), at(1)).empty());
  run(kFirst);
  EXPECT_TRUE(hear(Term(2), ack_of({{kRank, kFirst}}), at(1), at(1)).empty());
  EXPECT_EQ(core_.counters().lower_term, 2U);
}

TEST_F(Core, DropsFramesOfAnotherJobWhateverTheirTerm) {
  EXPECT_TRUE(core_.step(FrameHeard{job(2), Term(3), {}, Shutdown{}}, at(1)).empty());
  EXPECT_TRUE(core_.step(FrameHeard{job(2), Term(9), {}, Shutdown{}}, at(1)).empty());
  EXPECT_EQ(core_.counters().foreign_job, 2U);
  EXPECT_EQ(core_.promised(), Term(3));
}

TEST_F(Core, ObeysAHigherTermOnlyAfterItsPromiseIsDurable) {
  const auto actions = hear(Term(4), order(19), at(1));
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(only<PersistPromise>(actions).at(0).term, Term(4));
  EXPECT_EQ(core_.promised(), Term(3));
  // A second one waits with it, and asks for no second promise.
  EXPECT_TRUE(hear(Term(4), order(20), at(1)).empty());
  // The supervisor before may be obeyed no more, though its successor is not yet.
  EXPECT_TRUE(hear(Term(3), Start{}, at(1)).empty());

  const auto obeyed = core_.step(PromisePersisted{Term(4)}, at(2));
  EXPECT_EQ(core_.promised(), Term(4));
  ASSERT_EQ(obeyed.size(), 2U);
  EXPECT_EQ(passed_on(19, {obeyed[0]}), 1U);
  EXPECT_EQ(passed_on(20, {obeyed[1]}), 1U);
}

TEST_F(Core, ObeysNobodyWhoseTermCannotBePromised) {
  hear(Term(4), order(19), at(1));
  EXPECT_TRUE(core_.step(PromiseFailed{Term(4)}, at(2)).empty());
  EXPECT_EQ(core_.promised(), Term(3));
  // The next frame is a new attempt.
  EXPECT_EQ(only<PersistPromise>(hear(Term(4), order(19), at(3))).size(), 1U);
  EXPECT_EQ(passed_on(19, core_.step(PromisePersisted{Term(4)}, at(4))), 1U);
}

TEST_F(Core, PromisesOnceMoreForAStillHigherTerm) {
  hear(Term(4), order(19), at(1));
  EXPECT_TRUE(hear(Term(5), order(20), at(1)).empty());
  const auto actions = core_.step(PromisePersisted{Term(4)}, at(2));
  EXPECT_EQ(passed_on(19, actions), 1U);
  EXPECT_EQ(passed_on(20, actions), 0U);
  EXPECT_EQ(only<PersistPromise>(actions).at(0).term, Term(5));
  EXPECT_EQ(passed_on(20, core_.step(PromisePersisted{Term(5)}, at(3))), 1U);
}

TEST_F(Core, HoldsABoundedNumberOfFramesDuringAPromise) {
  for (std::size_t i = 0; i < DaemonCore::kHeldFrames + 10; ++i) hear(Term(4), order(19), at(1));
  EXPECT_EQ(core_.counters().held_overflow, 10U);
  EXPECT_EQ(passed_on(19, core_.step(PromisePersisted{Term(4)}, at(2))), DaemonCore::kHeldFrames);
}

TEST_F(Core, IgnoresACompletionThatIsNotThePendingOne) {
  hear(Term(5), order(19), at(1));
  EXPECT_TRUE(core_.step(PromisePersisted{Term(4)}, at(2)).empty());
  EXPECT_EQ(core_.promised(), Term(3));
}

TEST(CoreStart, PromisesTheTermOfWhoeverStartedIt) {
  DaemonCore core(CoreOptions{.job = job(1), .promised = Term(0), .orphan_ttl = kOrphanTtl, .hearing = kHearing});
  EXPECT_EQ(only<PersistPromise>(core.step(Started{Term(7)}, at(0))).at(0).term, Term(7));
  core.step(PromiseFailed{Term(7)}, at(1));
  // Not even a disk that forgets lets an earlier supervisor in.
  EXPECT_TRUE(core.step(FrameHeard{job(1), Term(6), {}, Start{}}, at(2)).empty());
  EXPECT_EQ(core.counters().lower_term, 1U);
}

TEST_F(Core, CountsALeaseFromTheSendOfTheAnsweredBeat) {
  run(kFirst);
  // Sent at 10 s, answered only at 13 s: the lease ends at 16 s, not at 19 s.
  const auto leases = told<KeeperLease>(hear(Term(3), ack_of({{kRank, kFirst}}), at(13), at(10)));
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases[0].until, at(16));
  EXPECT_EQ(leases[0].processes, (std::vector<Incarnation>{{kRank, kFirst}}));
}

TEST_F(Core, GrantsNothingForAnUnknownBeat) {
  run(kFirst);
  EXPECT_TRUE(hear(Term(3), ack_of({{kRank, kFirst}}), at(1)).empty());
  EXPECT_EQ(core_.counters().unknown_beat, 1U);
}

TEST_F(Core, GrantsNothingWithAnAnswerThatIsOlderThanTheLease) {
  run(kFirst);
  EXPECT_TRUE(hear(Term(3), ack_of({{kRank, kFirst}}), at(16), at(10)).empty());
  EXPECT_TRUE(hear(Term(3), ack_of({{kRank, kFirst}}), at(20), at(10)).empty());
}

TEST_F(Core, LetsRepeatedAndReorderedAnswersShortenNoLease) {
  run(kFirst);
  EXPECT_EQ(told<KeeperLease>(hear(Term(3), ack_of({{kRank, kFirst}}), at(12), at(12))).at(0).until, at(18));
  EXPECT_TRUE(hear(Term(3), ack_of({{kRank, kFirst}}), at(12), at(12)).empty());
  EXPECT_TRUE(hear(Term(3), ack_of({{kRank, kFirst}}), at(13), at(11)).empty());
  EXPECT_EQ(told<KeeperLease>(hear(Term(3), ack_of({{kRank, kFirst}}), at(14), at(13))).at(0).until, at(19));
}

TEST_F(Core, GrantsOnlyToTheGenerationThatRuns) {
  run(kSecond);
  const RankId other{MeshId(0), Rank(6)};
  EXPECT_TRUE(hear(Term(3), ack_of({{kRank, kFirst}}), at(1), at(1)).empty());
  EXPECT_TRUE(hear(Term(3), ack_of({{other, kSecond}}), at(1), at(1)).empty());
  EXPECT_EQ(
      told<KeeperLease>(hear(Term(3), ack_of({{kRank, kSecond}, {other, kSecond}}), at(1), at(1))).at(0).processes,
      (std::vector<Incarnation>{{kRank, kSecond}}));
}

TEST_F(Core, GrantsNothingToWhatHasEnded) {
  run(kFirst);
  end(kFirst, at(1));
  EXPECT_TRUE(told<KeeperLease>(hear(Term(3), ack_of({{kRank, kFirst}}), at(2), at(2))).empty());
}

TEST_F(Core, SaysHelloWhenAsked) {
  Ack ack;
  ack.say_hello = true;
  EXPECT_EQ(only<SayHello>(hear(Term(3), ack, at(1))).size(), 1U);
  EXPECT_TRUE(only<SayHello>(hear(Term(2), ack, at(1))).empty());
}

TEST_F(Core, BeatsAtOnceOnEveryChangeOfARank) {
  const auto changed = only<BeatChanged>(core_.step(RankTold{report(kRank, kFirst, RankPhase::kGated)}, at(1)));
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_TRUE(changed[0].at_once);
  ASSERT_EQ(core_.reports().size(), 1U);
  EXPECT_EQ(core_.reports()[0].phase, RankPhase::kGated);
  core_.step(RankTold{report(kRank, kFirst, RankPhase::kRunning)}, at(2));
  EXPECT_EQ(core_.reports()[0].phase, RankPhase::kRunning);
}

TEST_F(Core, HurriesNoBeatForProgressAlone) {
  RankReport running = report(kRank, kFirst, RankPhase::kRunning);
  core_.step(RankTold{running}, at(1));
  running.progress.step = 17;
  auto changed = only<BeatChanged>(core_.step(RankTold{running}, at(2)));
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_FALSE(changed[0].at_once);
  EXPECT_EQ(core_.reports().at(0).progress.step, 17U);
  running.talk_drops.too_long = 3;
  changed = only<BeatChanged>(core_.step(RankTold{running}, at(2)));
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_FALSE(changed[0].at_once);
  EXPECT_EQ(core_.reports().at(0).talk_drops.too_long, 3U);
  running.ready = true;
  running.progress.step = 18;
  changed = only<BeatChanged>(core_.step(RankTold{running}, at(3)));
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_TRUE(changed[0].at_once);
}

TEST_F(Core, ReportsOutputFromTheLogAloneAndHurriesOnlyItsEnd) {
  run(kFirst);
  const Incarnation incarnation{kRank, kFirst};
  auto changed = only<BeatChanged>(core_.step(OutputTold{incarnation, 100, 7, false}, at(1)));
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_FALSE(changed[0].at_once);
  // What the keeper says of bytes is nothing.
  end(kFirst, at(2));
  EXPECT_EQ(core_.reports().at(0).stdout_bytes, 100U);
  EXPECT_EQ(core_.reports().at(0).stderr_bytes, 7U);
  EXPECT_FALSE(core_.reports().at(0).output_complete);
  changed = only<BeatChanged>(core_.step(OutputTold{incarnation, 120, 7, true}, at(3)));
  EXPECT_TRUE(changed.at(0).at_once);
  EXPECT_TRUE(core_.reports().at(0).output_complete);
  EXPECT_EQ(core_.reports().at(0).stdout_bytes, 120U);
}

TEST_F(Core, ForgetsARankOnlyWhenItHasEndedAndItsOutputIsSafe) {
  Ack ack;
  ack.forget = {{kRank, kFirst}};
  run(kFirst);
  EXPECT_TRUE(told<KeeperForget>(hear(Term(3), ack, at(1))).empty());
  end(kFirst, at(2));
  EXPECT_TRUE(told<KeeperForget>(hear(Term(3), ack, at(2))).empty());
  EXPECT_EQ(core_.reports().size(), 1U);
  core_.step(OutputTold{Incarnation{kRank, kFirst}, 1, 0, true}, at(3));
  // A forget needs no known beat: it grants nothing.
  EXPECT_EQ(told<KeeperForget>(hear(Term(3), ack, at(3))).at(0).processes, (std::vector<Incarnation>{{kRank, kFirst}}));
  EXPECT_TRUE(core_.reports().empty());
  EXPECT_TRUE(told<KeeperForget>(hear(Term(3), ack, at(4))).empty());
  // Late word of a forgotten rank brings nothing back.
  EXPECT_TRUE(core_.step(OutputTold{Incarnation{kRank, kFirst}, 1, 0, true}, at(5)).empty());
}

// It has no end of its own: its process goes on as another rank.
TEST_F(Core, TellsOfAStandbyThatBecameARankUntilItsOutputIsSafe) {
  const RankId standby{MeshId(2), Rank(0)};
  core_.step(RankTold{report(standby, kFirst, RankPhase::kRunning)}, at(1));
  const auto taken = core_.step(TakenOver{{standby, kFirst}}, at(2));
  EXPECT_TRUE(only<BeatChanged>(taken).back().at_once);
  ASSERT_EQ(core_.reports().size(), 1U);
  EXPECT_EQ(core_.reports()[0].phase, RankPhase::kEnded);
  EXPECT_EQ(core_.reports()[0].end.kind, EndKind::kNone);
  Ack forget = ack_of({});
  forget.forget = {{standby, kFirst}};
  hear(Term(3), forget, at(3), at(2));
  EXPECT_EQ(core_.reports().size(), 1U) << "its last output is still on its way into the file";
  core_.step(OutputTold{{standby, kFirst}, 8, 0, true}, at(4));
  hear(Term(3), forget, at(5), at(4));
  EXPECT_TRUE(core_.reports().empty());
}

TEST_F(Core, KeepsTwoGenerationsOfARankApart) {
  run(kFirst);
  end(kFirst, at(1));
  run(kSecond, at(2));
  EXPECT_EQ(core_.reports().size(), 2U);
  Ack ack;
  ack.forget = {{kRank, kFirst}};
  core_.step(OutputTold{Incarnation{kRank, kFirst}, 1, 0, true}, at(3));
  hear(Term(3), ack, at(4));
  ASSERT_EQ(core_.reports().size(), 1U);
  EXPECT_EQ(core_.reports()[0].process.generation, kSecond);
}

TEST_F(Core, EndsAWorkerThatNobodyNeeds) {
  EXPECT_EQ(core_.next_due(), at(60));
  hear(Term(3), ack_of({}), at(10), at(10));
  // What is waited under a lease counts as an orphan's time.
  EXPECT_EQ(core_.next_due(), at(70));
  EXPECT_TRUE(core_.step(Tick{}, at(69)).empty());
  const auto ended = told<KeeperShutdown>(core_.step(Tick{}, at(70)));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].exit_code, kExitOrphaned);
  EXPECT_EQ(core_.next_due(), Instant::never());
}

TEST_F(Core, WaitsNoTimeInWhichItStoodStill) {
  (void)core_.step(Started{Term(3)}, at(0));
  const Instant before = core_.next_due();
  (void)core_.step(StoodStill{Duration::seconds(500)}, at(510));
  EXPECT_EQ(core_.next_due(), before + Duration::seconds(500));
  EXPECT_TRUE(core_.step(Tick{}, at(511)).empty());
}

TEST_F(Core, EndsNoWorkerUnderALease) {
  Ack ack = ack_of({});
  ack.lease = Duration::seconds(90);
  hear(Term(3), ack, at(10), at(10));
  EXPECT_EQ(core_.next_due(), at(100));
}

TEST_F(Core, WaitsForNobodyLongerThanALeaseOnceItsEndWasForetold) {
  Ack ack = ack_of({});
  ack.lease = Duration::seconds(6);
  hear(Term(3), ack, at(10), at(10));
  EXPECT_TRUE(core_.step(EndForetold{}, at(11)).empty());
  EXPECT_EQ(core_.next_due(), at(16));
  hear(Term(3), ack, at(12), at(12));
  EXPECT_EQ(core_.next_due(), at(18)) << "who was heard then may be lost with the next thing that ends";
  hear(Term(3), ack, at(400), at(400));
  EXPECT_EQ(core_.next_due(), at(460)) << "nothing came of it";
  EXPECT_TRUE(core_.step(EndForetold{}, at(401)).empty());
  const auto ended = told<KeeperShutdown>(core_.step(Tick{}, at(406)));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].exit_code, 0) << "who foretold it ends what else there is";
}

// Nothing of a job is left on a host that nobody reaches after the spec's lease and orphan_ttl.
TEST_F(Core, EndsAWorkerSoonAfterItsRanksWereKilled) {
  run(kFirst);
  Ack ack = ack_of({{kRank, kFirst}});
  ack.lease = kOrphanTtl;  // which is longer than the spec's lease, of 6 s
  hear(Term(3), ack, at(10), at(10));
  end(kFirst, at(70));
  EXPECT_EQ(core_.next_due(), at(73));
}

TEST_F(Core, EndsNoWorkerWhileARankLives) {
  run(kFirst);
  EXPECT_EQ(core_.next_due(), Instant::never());
  EXPECT_TRUE(core_.step(Tick{}, at(1'000)).empty());
  end(kFirst, at(1'000));
  // The supervisor may come back to hear of the end.
  EXPECT_EQ(core_.next_due(), at(1'003));
}

TEST_F(Core, IsNotKeptAliveByASupervisorThatItDoesNotObey) {
  hear(Term(2), ack_of({}), at(50), at(50));
  core_.step(FrameHeard{job(2), Term(3), at(50), ack_of({})}, at(50));
  EXPECT_EQ(core_.next_due(), at(60));
}

}  // namespace
}  // namespace monarch::daemon
