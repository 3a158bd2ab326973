// A post's core, by itself and with another host's; what goes from one to the other is carried by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/core/post/post_hosts.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

class SmallPost : public PostCoreTest {
 protected:
  static PostLimits small() {
    PostLimits limits;
    limits.calls = 2;
    limits.call_bytes = 300;
    limits.of_an_actor = 1;
    return limits;
  }
  SmallPost() : PostCoreTest(small()) {}
};

TEST_F(PostCoreTest, WelcomesNobodyBeforeItKnowsTheJob) {
  say(0, kCaller, hello_of("", 0, false));
  EXPECT_TRUE(hosts_[0].done.empty());
  feed(0, post_event::RosterCame{some_roster()});
  const auto welcome = told<PostWelcome>(0, kCaller);
  ASSERT_EQ(welcome.size(), 1U);
  EXPECT_EQ(welcome[0].host, "h0");
  EXPECT_EQ(welcome[0].meshes, some_roster().meshes);
  EXPECT_EQ(welcome[0].calls, 16'384U);
}

TEST_F(PostCoreTest, TurnsAwayWhoCannotBeMeant) {
  feed(0, post_event::RosterCame{some_roster()});
  const auto why = [&](const PostHello& hello) {
    hosts_[0].done.clear();
    const DoorId door(100 + hello.rank);
    say(0, door, hello);
    feed(0, post_event::DoorLeft{door});
    const auto all = closed(0);
    return all.empty() ? std::string() : all.front();
  };
  EXPECT_EQ(why(hello_of("wrok", 0, true)), "the job has no mesh wrok; did you mean work?");
  EXPECT_EQ(why(hello_of("zzz", 0, true)), "the job has no mesh zzz; it has work, control");
  EXPECT_EQ(why(hello_of("work", 4, true)), "there is no rank work/4");
  EXPECT_EQ(why(hello_of("work", 1, true, 0)), "a later start of work/1 has its place");
  EXPECT_EQ(why(hello_of("@guests", 0, true)), "the job has no mesh @guests; it has work, control");
  EXPECT_EQ(why(hello_of("", 0, true)), "only a rank of the job serves before version 4 of the door");
  PostHello old = hello_of("work", 0, true);
  old.version = 1;
  EXPECT_EQ(why(old), "it speaks version 1 of the door, and this post 2 on");
  PostHello future = hello_of("work", 0, true);
  future.version = kPostDoorVersion + 1;
  EXPECT_EQ(why(future), "");
  EXPECT_EQ(why(hello_of("work", 0, true)), "");
}

TEST_F(PostCoreTest, RunsACallOnThisHostAndOnAnother) {
  begin();
  PostCall call = call_of(1, {0, 2});
  call.quiet = false;
  say(0, kCaller, call);
  EXPECT_EQ(acts<post_action::Dial>(0).size(), 1U);
  connect();
  const auto here = told<PostDeliver>(0, kServer);
  const auto there = told<PostDeliver>(1, kServer);
  ASSERT_EQ(here.size(), 1U);
  ASSERT_EQ(there.size(), 1U);
  EXPECT_EQ(here[0].target, call.target);
  EXPECT_EQ(here[0].body.at, call.body.at);
  EXPECT_EQ(there[0].caller, (CallerName{.mesh = "control", .rank = {MeshId(1), Rank(0)}, .generation = 1}));
  answer(0, here[0].delivery);
  EXPECT_TRUE(told<PostOver>(0, kCaller).empty());
  answer(1, there[0].delivery, OutcomeKind::kRemoteError);
  carry();
  const auto answers = told<PostAnswer>(0, kCaller);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].rank, 0U);
  EXPECT_EQ(answers[0].outcome.kind, OutcomeKind::kValue);
  EXPECT_EQ(answers[0].outcome.generation, 1U);
  EXPECT_EQ(answers[1].rank, 2U);
  EXPECT_EQ(answers[1].outcome.kind, OutcomeKind::kRemoteError);
  EXPECT_EQ(told<PostOver>(0, kCaller), (std::vector<PostOver>{{.id = 1, .refused = {}}}));
  EXPECT_EQ(hosts_[0].core.bodies() + hosts_[1].core.bodies(), 0U);
  EXPECT_EQ(acts<post_action::FreeBody>(0).size(), 1U);
}

TEST_F(PostCoreTest, SaysNothingOfTheValuesOfAQuietCall) {
  begin();
  PostCall call = call_of(1, {0});
  call.quiet = true;
  say(0, kCaller, call);
  answer(0, told<PostDeliver>(0, kServer)[0].delivery);
  EXPECT_TRUE(told<PostAnswer>(0, kCaller).empty());
  EXPECT_EQ(told<PostOver>(0, kCaller).size(), 1U);
}

// Of each call to a rank of this host and one of the other: whether the delivery was asked, and the outcome answered,
// on the machine of who hears it.
class PostOfMachines : public PostCoreTest {
 protected:
  explicit PostOfMachines(bool one_machine = false) : PostCoreTest({}, one_machine) {}
  std::vector<bool> all_here() {
    begin();
    PostHello hello = hello_of("control", 0, false);
    hello.version = kPostDoorVersion;  // it hears answers together
    say(0, DoorId(3), hello);
    for (const DoorId door : {kCaller, DoorId(3)}) {
      hosts_[0].done.clear();
      hosts_[1].done.clear();
      say(0, door, call_of(1, {0, 2, 3}));
      connect();
      carry();
      for (std::uint32_t host = 0; host < 2; ++host) {
        const PostDeliver given = told<PostDeliver>(host, kServer).at(0);
        here_.push_back(given.here);
        answer(host, given.delivery);
      }
      carry();
      for (const PostAnswer& one : told<PostAnswer>(0, door)) here_.push_back(one.here);
      for (const PostAnswers& some : told<PostAnswers>(0, door)) {
        for (const SaidAnswer& one : some.answers) here_.push_back(one.here);
      }
    }
    feed(0, post_event::RosterCame{without_the_other()});
    return here_;
  }
  static Roster without_the_other() {
    Roster roster = some_roster(2);
    roster.hosts.pop_back();
    return roster;
  }
  std::vector<bool> here_;
};
class PostOfOneMachine : public PostOfMachines {
 protected:
  PostOfOneMachine() : PostOfMachines(true) {}
};

TEST_F(PostOfMachines, SaysWhatIsOfThisMachine) {
  EXPECT_EQ(all_here(), (std::vector<bool>{true, false, true, false, true, false, true, false}));
  // What the post says itself, of a host that is none any more, is its own word.
  const auto alone = told<PostAnswer>(0, kCaller);
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_EQ(alone[0].outcome.kind, OutcomeKind::kRankLost);
  EXPECT_TRUE(alone[0].here);
  EXPECT_TRUE(told<PostAnswers>(0, DoorId(3)).back().answers.at(0).here);
}

TEST_F(PostOfOneMachine, SaysThatAllIsHere) { EXPECT_EQ(all_here(), std::vector<bool>(8, true)); }

TEST_F(PostCoreTest, RefusesWhatCannotBeCalledAndSaysWhatCan) {
  begin();
  const auto refused = [&](const PostCall& call) {
    hosts_[0].done.clear();
    say(0, kCaller, call);
    const auto over = told<PostOver>(0, kCaller);
    return over.empty() ? std::string("nothing") : over[0].refused;
  };
  PostCall elsewhere = call_of(1, {0});
  elsewhere.mesh = "wrk";
  EXPECT_EQ(refused(elsewhere), "the job has no mesh wrk; did you mean work?");
  EXPECT_EQ(refused(call_of(2, {4})), "there is no rank work/4: the mesh has 4");
  EXPECT_EQ(refused(call_of(3, {1, 0, 1})), "the call names work/1 twice");
  PostCall huge = call_of(4, {0});
  huge.body.bytes = kBodyBytes + 1;
  EXPECT_EQ(refused(huge), "its arguments are 1GiB: a call carries 1GiB at most, 64MiB to another host");
  huge.body.bytes = 100U << 20U;
  huge.target = {kCardsActor, "c", "0"};
  EXPECT_EQ(refused(huge), "its arguments are 100MiB: a call carries 1GiB at most, 64MiB to another host");
  PostCall wide = call_of(5, {});
  wide.ranks = {{.first = 0, .count = 3, .step = 2'000'000'000}};
  EXPECT_EQ(refused(wide), "there is no rank work/4000000000: the mesh has 4");
  EXPECT_EQ(refused(call_of(6, {})), "");
  PostCall named = call_of(7, {0});
  named.target.actor.assign(kActorNameBytes + 1, 'a');
  EXPECT_EQ(refused(named), "the name of its actor is 257 bytes long, and 256 are the most");
  named = call_of(8, {0});
  named.target.signature.assign(1U << 20U, 's');
  EXPECT_EQ(refused(named), "its signature is 1048576 bytes long, and 8192 are the most");

  const auto outcome = [&](std::uint64_t id, CallTarget target) {
    hosts_[0].done.clear();
    PostCall call = call_of(id, {0});
    call.target = std::move(target);
    say(0, kCaller, call);
    const auto answers = told<PostAnswer>(0, kCaller);
    return answers.empty() ? End{} : end_of(answers[0]);
  };
  EXPECT_EQ(outcome(10, {"greter", "say_hello", "s->s"}),
            (End{OutcomeKind::kRefused, "the rank has no actor greter; did you mean greeter?"}));
  EXPECT_EQ(outcome(11, {"greeter", "say_helo", "s->s"}),
            (End{OutcomeKind::kRefused, "actor greeter (Greeter) has no endpoint say_helo; did you mean say_hello?"}));
  EXPECT_EQ(outcome(12, {"greeter", "say_hello", "i->s"}),
            (End{OutcomeKind::kRefused, "greeter.say_hello is s->s and was called as i->s"}));
  EXPECT_TRUE(outcome(13, {"greeter", "any", "i->s"}).second.empty());
  EXPECT_TRUE(outcome(14, {"greeter", "say_hello", "*"}).second.empty());
}

// No host hears more, and the call would wait for ever.
TEST_F(PostCoreTest, TellsAnotherHostNoMoreOfARefusalThanItHears) {
  begin();
  PostHello many = hello_of("work", 3, true);
  for (int actor = 0; actor < 1'000; ++actor) many.actors.push_back({std::string(200, 'a') + text(actor), "A", {}});
  say(1, DoorId(8), many);
  PostCall call = call_of(1, {3});
  call.target.actor = "none of these";
  say(0, kCaller, call);
  connect();
  const auto answers = told<PostAnswer>(0, kCaller);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].outcome.kind, OutcomeKind::kRefused);
  EXPECT_LE(answers[0].outcome.text.size(), kOutcomeTextBytes);
  EXPECT_GT(answers[0].outcome.text.size(), kOutcomeTextBytes - 4);
}

TEST_F(PostCoreTest, EndsWhatARankHadWithTheCauseThatItsKeeperTells) {
  begin();
  say(0, kCaller, call_of(1, {0}));
  feed(0, post_event::DoorLeft{kServer});
  EXPECT_TRUE(told<PostAnswer>(0, kCaller).empty()) << "the cause is waited for";
  feed(0, post_event::RankEnded{{kFirst, {Term(1), 1}}, "signal 9 (KILL)"});
  ASSERT_EQ(told<PostAnswer>(0, kCaller).size(), 1U);
  EXPECT_EQ(end_of(told<PostAnswer>(0, kCaller)[0]), (End{OutcomeKind::kRankLost, "signal 9 (KILL)"}));
  // One that is called now ends at once, and its successor is given nothing of before.
  say(0, kCaller, call_of(2, {0}));
  ASSERT_EQ(told<PostAnswer>(0, kCaller).size(), 2U);
  EXPECT_EQ(end_of(told<PostAnswer>(0, kCaller)[1]),
            (End{OutcomeKind::kRankLost, "it is being started again: signal 9 (KILL)"}));
  hosts_[0].done.clear();
  say(0, DoorId(9), hello_of("work", 0, true, 2));
  EXPECT_TRUE(told<PostDeliver>(0, DoorId(9)).empty());
  say(0, kCaller, call_of(3, {0}));
  EXPECT_EQ(told<PostDeliver>(0, DoorId(9)).size(), 1U);
}

TEST_F(PostCoreTest, WaitsForTheCauseAQuarterOfASecondAtMost) {
  begin();
  say(0, kCaller, call_of(1, {0}));
  feed(0, post_event::DoorLeft{kServer});
  EXPECT_EQ(hosts_[0].core.next_due(), now_ + DeliveryTable::kCausePatience);
  now_ = now_ + DeliveryTable::kCausePatience;
  feed(0, post_event::Tick{});
  ASSERT_EQ(told<PostAnswer>(0, kCaller).size(), 1U);
  EXPECT_EQ(end_of(told<PostAnswer>(0, kCaller)[0]), (End{OutcomeKind::kRankLost, "it has closed its door"}));
}

TEST_F(PostCoreTest, ClosesADoorThatOutlivesItsProcess) {
  begin();
  say(0, kCaller, call_of(1, {0}));
  feed(0, post_event::RankEnded{{kFirst, {Term(1), 1}}, "status 3"});
  EXPECT_TRUE(told<PostAnswer>(0, kCaller).empty()) << "what it said last may be on its way";
  now_ = now_ + DeliveryTable::kCausePatience;
  feed(0, post_event::Tick{});
  EXPECT_EQ(closed(0), std::vector<std::string>{"its process has ended"});
  ASSERT_EQ(told<PostAnswer>(0, kCaller).size(), 1U);
  EXPECT_EQ(end_of(told<PostAnswer>(0, kCaller)[0]), (End{OutcomeKind::kRankLost, "status 3"}));
}

TEST_F(PostCoreTest, WaitsFiveSecondsForARankThatRunsAndHasNotCome) {
  begin();
  say(0, kCaller, call_of(1, {1}));
  EXPECT_TRUE(told<PostAnswer>(0, kCaller).empty());
  say(0, DoorId(7), hello_of("work", 1, true));
  EXPECT_EQ(told<PostDeliver>(0, DoorId(7)).size(), 1U);
  feed(0, post_event::DoorLeft{DoorId(7)});
  feed(0, post_event::RosterCame{some_roster(2)});
  hosts_[0].done.clear();
  now_ = now_ + DeliveryTable::kCausePatience;
  feed(0, post_event::Tick{});
  say(0, kCaller, call_of(2, {1}));
  now_ = now_ + DeliveryTable::kHelloPatience;
  feed(0, post_event::Tick{});
  const auto answers = told<PostAnswer>(0, kCaller);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(end_of(answers[1]), (End{OutcomeKind::kRankLost, "it does not come to the post of its host"}));
}

TEST_F(PostCoreTest, EndsCallsToARankThatTheRosterCallsDown) {
  begin();
  Roster roster = some_roster(2);
  roster.runs = {{MeshId(0), Rank(0), 1, HostId(0), {Term(1), 1}, RosterState::kUp},
                 {MeshId(0), Rank(1), 1, HostId(0), {Term(1), 1}, RosterState::kEnded},
                 {MeshId(0), Rank(2), 1, HostId(1), {Term(1), 1}, RosterState::kDown},
                 {MeshId(0), Rank(3), 1, HostId(1), {Term(1), 1}, RosterState::kGivenUp}};
  roster.failures = {{1, MeshId(0), Rank(2), 2, 1, "signal 11 (SEGV)"}};
  feed(0, post_event::RosterCame{roster});
  say(0, kCaller, call_of(1, {1, 2, 3}));
  std::vector<End> ends;
  for (const PostAnswer& one : told<PostAnswer>(0, kCaller)) ends.push_back(end_of(one));
  EXPECT_EQ(ends, (std::vector<End>{{OutcomeKind::kRankLost, "it is being started again: signal 11 (SEGV)"},
                                    {OutcomeKind::kRankLost, "it is given up: signal 11 (SEGV)"},
                                    {OutcomeKind::kRankLost, "it has ended"}}));
}

// The roster of a caller may be older than the news that let it begin.
TEST_F(PostCoreTest, WaitsForARankThatIsStartedForTheFirstTimeAsLongAsThatTakes) {
  Roster roster = some_roster(1);
  for (RosterRun& run : roster.runs) {
    if (run.mesh == MeshId(0)) run.state = RosterState::kStarting;
  }
  for (std::uint32_t host = 0; host < 2; ++host) feed(host, post_event::RosterCame{roster});
  say(0, kCaller, hello_of("control", 0, false));
  say(0, kCaller, call_of(1, {1, 2}));
  connect();
  now_ = now_ + DeliveryTable::kHelloPatience * 4;
  for (std::uint32_t host = 0; host < 2; ++host) feed(host, post_event::Tick{});
  EXPECT_TRUE(told<PostAnswer>(0, kCaller).empty());
  say(1, kServer, hello_of("work", 2, true));
  EXPECT_EQ(told<PostDeliver>(1, kServer).size(), 1U);
  // Once it is said to be up it has to come, as any other.
  feed(0, post_event::RosterCame{some_roster(2)});
  now_ = now_ + DeliveryTable::kHelloPatience;
  feed(0, post_event::Tick{});
  const auto answers = told<PostAnswer>(0, kCaller);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(end_of(answers[0]), (End{OutcomeKind::kRankLost, "it does not come to the post of its host"}));
}

TEST_F(PostCoreTest, EndsWhatWaitsForAHostThatIsLostOrHasNoPost) {
  begin();
  connect();
  say(0, kCaller, call_of(1, {2, 3}));
  Roster without = some_roster(2);
  without.hosts[1].without_post = "it ends with status 70";
  feed(0, post_event::RosterCame{without});
  auto answers = told<PostAnswer>(0, kCaller);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(end_of(answers[0]), (End{OutcomeKind::kGone, "no post on h1: it ends with status 70"}));
  hosts_[0].done.clear();
  say(0, kCaller, call_of(2, {2}));
  ASSERT_EQ(told<PostAnswer>(0, kCaller).size(), 1U);
  feed(0, post_event::RosterCame{some_roster(3)});
  say(0, kCaller, call_of(3, {2}));
  Roster lost = some_roster(4);
  lost.hosts.pop_back();
  lost.failures = {{1, MeshId(0), Rank(2), 2, 1, "host h1 is lost"}};
  lost.runs[1].state = RosterState::kDown;
  hosts_[0].done.clear();
  feed(0, post_event::RosterCame{lost});
  answers = told<PostAnswer>(0, kCaller);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(end_of(answers[0]), (End{OutcomeKind::kRankLost, "it is being started again: host h1 is lost"}));
}

TEST_F(PostCoreTest, TakesNoOlderRoster) {
  feed(0, post_event::RosterCame{some_roster(5)});
  Roster older = some_roster(4);
  older.meshes.pop_back();
  feed(0, post_event::RosterCame{older});
  EXPECT_EQ(hosts_[0].core.roster().roster(), some_roster(5));
  older.term = Term(2);
  older.number = 1;
  feed(0, post_event::RosterCame{older});
  EXPECT_EQ(hosts_[0].core.roster().roster(), older);
}

TEST_F(PostCoreTest, EndsACallAtItsDeadlineAndTakesItBack) {
  begin();
  PostCall call = call_of(1, {0, 2, 1});
  call.deadline = now_ + Duration::seconds(1);
  say(0, kCaller, call);
  connect();
  const auto here = told<PostDeliver>(0, kServer);
  const auto there = told<PostDeliver>(1, kServer);
  EXPECT_EQ(hosts_[0].core.next_due(), now_ + Duration::seconds(1));
  now_ = now_ + Duration::seconds(1);
  feed(0, post_event::Tick{});
  carry();
  EXPECT_EQ(told<PostAnswer>(0, kCaller).size(), 3U);
  EXPECT_EQ(end_of(told<PostAnswer>(0, kCaller)[0]),
            (End{OutcomeKind::kDeadline, "its deadline has passed, after 1s"}));
  EXPECT_EQ(told<PostTakeBack>(0, kServer), (std::vector<PostTakeBack>{{here[0].delivery}}));
  EXPECT_EQ(told<PostTakeBack>(1, kServer), (std::vector<PostTakeBack>{{there[0].delivery}}));
  // One of them had begun.
  answer(0, here[0].delivery, OutcomeKind::kCancelled);
  answer(1, there[0].delivery);
  carry();
  EXPECT_EQ(told<PostAnswer>(0, kCaller).size(), 3U);
  EXPECT_EQ(told<PostOver>(0, kCaller).size(), 1U);
  EXPECT_EQ(hosts_[0].core.deliveries() + hosts_[1].core.deliveries(), 0U);
}

TEST_F(PostCoreTest, CancelsACall) {
  begin();
  say(0, kCaller, call_of(1, {0}));
  say(0, kCaller, PostCancel{1});
  ASSERT_EQ(told<PostAnswer>(0, kCaller).size(), 1U);
  EXPECT_EQ(end_of(told<PostAnswer>(0, kCaller)[0]), (End{OutcomeKind::kCancelled, "its caller has cancelled it"}));
  EXPECT_EQ(told<PostTakeBack>(0, kServer).size(), 1U);
  say(0, kCaller, PostCancel{1});
  EXPECT_TRUE(closed(0).empty());
}

TEST_F(PostCoreTest, TakesBackWhatACallerThatHasLeftHadCalled) {
  begin();
  say(0, kCaller, call_of(1, {0, 1}));
  feed(0, post_event::DoorLeft{kCaller});
  EXPECT_EQ(told<PostTakeBack>(0, kServer).size(), 1U);
  EXPECT_EQ(hosts_[0].core.calls(), 0U);
  EXPECT_EQ(hosts_[0].core.deliveries(), 1U) << "the one that has not begun is gone";
}

TEST_F(PostCoreTest, RefusesACallerWhoseRankHasALaterStart) {
  begin();
  say(0, kCaller, call_of(1, {2}));
  Roster later = some_roster(2);
  later.runs[2].generation = {Term(1), 2};
  feed(1, post_event::RosterCame{later});
  connect();
  ASSERT_EQ(told<PostAnswer>(0, kCaller).size(), 1U);
  EXPECT_EQ(end_of(told<PostAnswer>(0, kCaller)[0]),
            (End{OutcomeKind::kRefused, "a later start of control/0 has its place"}));
  feed(0, post_event::RosterCame{later});
  say(0, kCaller, call_of(2, {0}));
  EXPECT_EQ(told<PostOver>(0, kCaller).back().refused, "a later start of control/0 has its place");
}

TEST_F(PostCoreTest, ClosesADoorThatSaysWhatNobodyMaySay) {
  begin();
  say(0, kServer, call_of(1, {0}));
  say(0, kCaller, PostReply{});
  say(0, kCaller, hello_of("control", 0, false));
  say(0, DoorId(50), PostCancel{});
  say(0, kCaller, call_of(2, {0}));
  say(0, kCaller, call_of(2, {0}));
  answer(0, told<PostDeliver>(0, kServer)[0].delivery, OutcomeKind::kBusy);
  EXPECT_EQ(closed(0), (std::vector<std::string>{"it has not come as a caller", "it has not come to serve",
                                                 "it says hello twice", "it has not come as a caller",
                                                 "call 2 is under way already", "its answer to delivery 1 is none"}));
}

TEST_F(PostCoreTest, NamesACallThatWaitsForLong) {
  begin();
  say(0, kCaller, call_of(1, {0, 1}));
  say(0, DoorId(7), hello_of("work", 1, true));
  for (int times = 1; times <= 2; ++times) {
    now_ = now_ + Duration::seconds(30);
    feed(0, post_event::Tick{});
    const auto tells = acts<post_action::Tell>(0);
    ASSERT_EQ(tells.size(), 1U) << "once";
    EXPECT_EQ(tells[0].kind, PostWordKind::kWaiting);
    EXPECT_EQ(tells[0].text, "control/0 waits for greeter.say_hello of work/0, work/1 for 30s");
  }
}

// However many wait, there is one line, and another one not before as long again.
TEST_F(PostCoreTest, NamesManyCallsThatWaitInOneLine) {
  begin();
  say(0, DoorId(3), hello_of("work", 1, true));
  say(0, DoorId(4), hello_of("work", 0, false));
  say(0, DoorId(5), hello_of("work", 1, false));
  say(0, DoorId(6), hello_of("", 0, false));
  const Instant began = now_;
  const auto told_at = [&](Duration since) {
    now_ = began + since;
    hosts_[0].done.clear();
    feed(0, post_event::Tick{});
    std::vector<std::string> words;
    for (const auto& tell : acts<post_action::Tell>(0)) words.push_back(tell.text);
    return words;
  };
  for (std::uint32_t i = 0; i < 300; ++i) {
    now_ = began + Duration::milliseconds(10 * i);
    say(0, kCaller, call_of(i + 1, {i % 2}));
  }
  say(0, DoorId(4), call_of(1, {1}, "any"));
  EXPECT_EQ(told_at(Duration::seconds(29)), std::vector<std::string>{});
  for (const DoorId door : {DoorId(5), DoorId(6)}) {
    for (std::uint32_t i = 2; i < 9; ++i) say(0, door, call_of(i, {0}, i % 2 == 0 ? "any" : "say_hello"));
  }
  say(0, DoorId(4), call_of(2, {1}));
  EXPECT_EQ(told_at(Duration::seconds(30)),
            std::vector<std::string>{"control/0 waits for greeter.say_hello of work/0, work/1 for 30s, in 300 calls; "
                                     "work/0 waits for greeter.any of work/1 for 27s"});
  EXPECT_EQ(told_at(Duration::milliseconds(59'900)), std::vector<std::string>{});
  EXPECT_EQ(told_at(Duration::seconds(60)),
            std::vector<std::string>{"work/0 waits for greeter.say_hello of work/1 for 31s; "
                                     "work/1 waits for greeter.any of work/0 for 31s, in 4 calls; "
                                     "work/1 waits for greeter.say_hello of work/0 for 31s, in 3 calls; "
                                     "a caller waits for greeter.any of work/0 for 31s, in 4 calls; "
                                     "3 other calls wait, too"});
  EXPECT_EQ(told_at(Duration::seconds(120)), std::vector<std::string>{});
}

// Across hosts nobody knows a ring, and its ends are named.
TEST_F(PostCoreTest, NamesTheActorsThatWaitForEachOther) {
  begin();
  connect();
  say(0, DoorId(4), hello_of("work", 0, false));
  say(0, DoorId(4), call_of(1, {2}));
  say(0, DoorId(4), PostWait{.id = 1, .actor = "trainer", .delivery = 7});
  now_ = now_ + Duration::seconds(30);
  feed(0, post_event::Tick{});
  std::vector<std::string> waits;
  for (const auto& tell : acts<post_action::Tell>(0)) {
    if (tell.kind == PostWordKind::kWaiting) waits.push_back(tell.text);
  }
  EXPECT_EQ(waits, std::vector<std::string>{"actor trainer of work/0 waits for greeter.say_hello of work/2 for 30s"});
}

// What it has not run, or cannot carry, it says itself.
TEST_F(PostCoreTest, TakesARanksWordThatItHasNotRunACall) {
  begin();
  for (const OutcomeKind kind : {OutcomeKind::kRankLost, OutcomeKind::kRefused}) {
    hosts_[0].done.clear();
    say(0, kCaller, call_of(static_cast<std::uint64_t>(kind), {0}));
    answer(0, told<PostDeliver>(0, kServer)[0].delivery, kind);
    ASSERT_EQ(told<PostAnswer>(0, kCaller).size(), 1U);
    EXPECT_EQ(told<PostAnswer>(0, kCaller)[0].outcome.kind, kind);
  }
  EXPECT_TRUE(closed(0).empty());
}

// Two ranks of a host, each of which calls the other's actor and waits for it.
TEST_F(PostCoreTest, TellsWhoWouldWaitForEver) {
  begin();
  say(0, DoorId(3), hello_of("work", 1, true));
  say(0, DoorId(4), hello_of("work", 0, false));
  say(0, DoorId(5), hello_of("work", 1, false));
  say(0, kCaller, call_of(1, {0}));
  say(0, DoorId(4), call_of(1, {1, 2}));
  const auto first = told<PostDeliver>(0, kServer);
  const auto second = told<PostDeliver>(0, DoorId(3));
  ASSERT_EQ(first.size(), 1U);
  ASSERT_EQ(second.size(), 1U);
  say(0, DoorId(4), PostWait{.id = 1, .actor = "greeter", .delivery = first[0].delivery});
  EXPECT_EQ(told<PostRing>(0, DoorId(4)), (std::vector<PostRing>{{1, ""}}));
  say(0, DoorId(5), call_of(1, {0}));
  say(0, DoorId(5), call_of(2, {0}, "any"));
  say(0, DoorId(5), PostWait{.id = 1, .actor = "greeter", .delivery = second[0].delivery});
  const std::string ring =
      "actor greeter of work/1 would wait for ever: it waits for greeter of work/0, which waits for it";
  EXPECT_EQ(told<PostRing>(0, DoorId(5)), (std::vector<PostRing>{{1, ring}}));
  answer(0, told<PostDeliver>(0, kServer)[1].delivery);
  say(0, DoorId(5), PostWait{.id = 1, .actor = "greeter", .delivery = second[0].delivery});
  EXPECT_EQ(told<PostRing>(0, DoorId(5))[1], (PostRing{1, ""})) << "that call is over";
  say(0, DoorId(4), PostWait{.id = 1, .actor = "", .delivery = 0});
  say(0, DoorId(5), PostWait{.id = 2, .actor = "greeter", .delivery = second[0].delivery});
  EXPECT_EQ(told<PostRing>(0, DoorId(5))[2], (PostRing{2, ""})) << "the other does not wait any more";
  PostCall timed = call_of(2, {1});
  timed.deadline = now_ + Duration::seconds(1);
  say(0, DoorId(4), timed);
  say(0, DoorId(4), PostWait{.id = 2, .actor = "greeter", .delivery = first[0].delivery});
  EXPECT_EQ(told<PostRing>(0, DoorId(4))[1], (PostRing{2, ""})) << "its deadline ends that";
  EXPECT_EQ(told<PostRing>(0, DoorId(4)).size(), 2U) << "who waits no more is not answered";
  say(0, DoorId(6), hello_of("", 0, false));
  say(0, DoorId(6), PostWait{.id = 1, .actor = "greeter", .delivery = 0});
  EXPECT_EQ(closed(0), std::vector<std::string>{"only a rank of the job has actors that wait"});
}

TEST_F(PostCoreTest, TellsOfAHostThatItDoesNotReach) {
  begin();
  say(0, kCaller, call_of(1, {2}));
  now_ = now_ + PeerLines::kToldUnreached;
  feed(0, post_event::Tick{});
  ASSERT_EQ(acts<post_action::Tell>(0).size(), 1U);
  EXPECT_EQ(acts<post_action::Tell>(0)[0].text, "h0 and h1 do not reach each other");
  connect();
  EXPECT_EQ(told<PostDeliver>(1, kServer).size(), 1U);
}

TEST_F(PostCoreTest, TellsWhoWatchesOfEachFailureOnce) {
  feed(0, post_event::RosterCame{some_roster()});
  PostHello hello = hello_of("control", 0, false);
  hello.watches = true;
  say(0, kCaller, hello);
  Roster roster = some_roster(2);
  roster.failures = {{1, MeshId(0), Rank(2), 2, 1, "signal 9"}};
  feed(0, post_event::RosterCame{roster});
  roster.number = 3;
  feed(0, post_event::RosterCame{roster});
  EXPECT_EQ(told<PostFailure>(0, kCaller), (std::vector<PostFailure>{{roster.failures[0]}}));
}

TEST_F(PostCoreTest, SaysHelloAgainWhereItIsNotAnswered) {
  begin();
  say(0, kCaller, call_of(1, {2}));
  feed(0, post_event::PeerUp{HostId(1)});
  ASSERT_EQ(hosts_[0].to_peer.size(), 1U);
  hosts_[0].to_peer.clear();
  now_ = now_ + PeerLines::kHelloAgain;
  feed(0, post_event::Tick{});
  carry();
  EXPECT_EQ(told<PostDeliver>(1, kServer).size(), 1U);
}

TEST_F(PostCoreTest, TakesNoMoreAsksInAMessageThanAPostPutsThere) {
  begin();
  say(0, kCaller, call_of(1, {2}));
  connect();
  hosts_[1].to_peer.clear();
  LineAsks asks;
  asks.ends = {HostId(0), {1, 1}, {1, 1}};
  asks.first = 2;
  asks.mesh = MeshId(0);
  asks.ranks.assign(PeerLines::kRanksOfAMessage + 1, AskedRank{Rank(2), false});
  feed(1, post_event::PeerSaid{HostId(0), asks});
  EXPECT_TRUE(hosts_[1].to_peer.empty());
  asks.ranks.resize(2);
  feed(1, post_event::PeerSaid{HostId(0), asks});
  ASSERT_EQ(hosts_[1].to_peer.size(), 1U);
  const auto* const answers = std::get_if<LineAnswers>(&hosts_[1].to_peer.front().message);
  ASSERT_TRUE(answers != nullptr);
  EXPECT_EQ(answers->answers.size(), 2U) << "each is refused: the rank has no actor of no name";
}

TEST_F(SmallPost, HoldsACallerThatHasTooManyCallsUnderWay) {
  begin();
  say(0, kCaller, call_of(1, {0}));
  EXPECT_TRUE(acts<post_action::HoldDoor>(0).empty());
  say(0, kCaller, call_of(2, {1}));
  EXPECT_EQ(acts<post_action::HoldDoor>(0).size(), 1U);
  answer(0, told<PostDeliver>(0, kServer)[0].delivery);
  EXPECT_EQ(acts<post_action::ReadDoor>(0).size(), 1U);
}

TEST_F(SmallPost, AnswersThatARanksQueueIsFull) {
  begin();
  say(0, kCaller, call_of(1, {0}));
  say(0, DoorId(30), hello_of("", 0, false));
  say(0, DoorId(30), call_of(1, {0}));
  const auto answers = told<PostAnswer>(0, DoorId(30));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(end_of(answers[0]), (End{OutcomeKind::kBusy, "its queue is full: 1 calls of 30B of this host wait there"}));
  EXPECT_EQ(told<PostDeliver>(0, kServer).size(), 1U);
}

TEST_F(SmallPost, CountsNamesAndRanksToo) {
  begin();
  PostCall wordy = call_of(1, {0});
  wordy.target.signature.assign(400, 'x');
  say(0, kCaller, wordy);
  EXPECT_EQ(acts<post_action::HoldDoor>(0).size(), 1U) << "300 bytes at most";
}

// A host that has filled a rank's queue leaves room for the calls of others.
TEST_F(PostCoreTest, HasRoomAtARankForEachHost) {
  begin();
  for (const std::uint64_t door : {1U, 30U}) {
    if (door != 1) say(0, DoorId(door), hello_of("", 0, false));
    for (std::uint64_t id = 1; id <= 1'024; ++id) say(0, DoorId(door), call_of(id, {2}));
  }
  connect();
  EXPECT_EQ(told<PostDeliver>(1, kServer).size(), 1'024U);
  const auto busy = told<PostAnswer>(0, DoorId(30));
  ASSERT_EQ(busy.size(), 1'024U);
  EXPECT_EQ(busy[0].outcome.kind, OutcomeKind::kBusy);
  say(1, kCaller, hello_of("work", 3, false));
  for (std::uint64_t id = 1; id <= 500; ++id) say(1, kCaller, call_of(id, {2}));
  EXPECT_EQ(told<PostDeliver>(1, kServer).size(), 1'524U);
  EXPECT_TRUE(told<PostAnswer>(1, kCaller).empty());
}

// What waits for one actor holds up no other, of that rank or of another, and comes in its order.
TEST_F(PostCoreTest, LetsASlowActorHoldUpNobodyElse) {
  begin();
  PostHello two = hello_of("work", 1, true);
  two.actors.push_back({"other", "Other", {{"any", "*"}}});
  say(0, DoorId(3), two);
  constexpr std::uint64_t kMany = 1'500;
  for (std::uint64_t id = 1; id <= kMany; ++id) say(0, kCaller, call_of(id, {1}));
  EXPECT_EQ(told<PostDeliver>(0, DoorId(3)).size(), 1'024U);
  EXPECT_TRUE(acts<post_action::HoldDoor>(0).empty());
  say(0, kCaller, call_of(2'000, {0}));
  EXPECT_EQ(told<PostDeliver>(0, kServer).size(), 1U) << "another rank";
  PostCall other = call_of(2'001, {1});
  other.target.actor = "other";
  other.target.endpoint = "any";
  say(0, kCaller, other);
  EXPECT_EQ(told<PostDeliver>(0, DoorId(3)).back().target.actor, "other");
  // What is taken back of those that wait ends at once.
  say(0, kCaller, PostCancel{1'030});
  ASSERT_EQ(told<PostAnswer>(0, kCaller).size(), 1U);
  EXPECT_EQ(told<PostAnswer>(0, kCaller)[0].outcome.kind, OutcomeKind::kCancelled);
  std::vector<std::uint64_t> bodies;
  std::size_t answers = 0;
  for (auto given = told<PostDeliver>(0, DoorId(3)); !given.empty(); given = told<PostDeliver>(0, DoorId(3))) {
    hosts_[0].done.clear();
    for (const PostDeliver& one : given) {
      if (one.target.actor == "greeter") bodies.push_back(one.body.at.value() - 100);
      PostReply reply;
      reply.delivery = one.delivery;
      say(0, DoorId(3), reply);
    }
    answers += told<PostAnswer>(0, kCaller).size();
  }
  ASSERT_EQ(bodies.size(), kMany - 1);
  EXPECT_TRUE(std::is_sorted(bodies.begin(), bodies.end()));
  EXPECT_EQ(answers, kMany) << "values of all but the one to the other rank and the one that was taken back";
}

TEST_F(PostCoreTest, KeepsNothingOfACallerThatHasLeft) {
  begin();
  for (std::uint64_t id = 1; id <= 1'100; ++id) say(0, kCaller, call_of(id, {0}));
  feed(0, post_event::DoorLeft{kCaller});
  EXPECT_EQ(told<PostTakeBack>(0, kServer).size(), 1'024U);
  EXPECT_EQ(hosts_[0].core.calls(), 0U);
  EXPECT_EQ(hosts_[0].core.bodies(), 1'024U) << "what waited is let go";
}

class FullPost : public PostCoreTest {
 protected:
  static PostLimits full() {
    PostLimits limits;
    limits.held_bytes = 15;
    return limits;
  }
  FullPost() : PostCoreTest(full()) {}
};

TEST_F(FullPost, SaysThatItHasNoRoomItself) {
  begin();
  say(0, kCaller, call_of(1, {0}));
  EXPECT_TRUE(told<PostAnswer>(0, kCaller).empty());
  say(0, kCaller, call_of(2, {0}));
  const auto answers = told<PostAnswer>(0, kCaller);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(end_of(answers[0]),
            (End{OutcomeKind::kBusy, "the post of its host has no room: it has 20B of calls and answers"}));
}

class HalfFullPost : public PostCoreTest {
 protected:
  static PostLimits half_full() {
    PostLimits limits;
    limits.held_bytes = 100;
    return limits;
  }
  HalfFullPost() : PostCoreTest(half_full()) {}
};

TEST_F(HalfFullPost, HasRoomForBodiesOfEachHost) {
  begin();
  for (std::uint64_t id = 1; id <= 7; ++id) {
    say(0, kCaller, call_of(id, {2}));
    if (id == 1) connect();
    carry();
  }
  EXPECT_EQ(told<PostDeliver>(1, kServer).size(), 5U) << "a half";
  const auto busy = told<PostAnswer>(0, kCaller);
  ASSERT_EQ(busy.size(), 2U);
  EXPECT_EQ(end_of(busy[0]),
            (End{OutcomeKind::kBusy, "the post of its host has no more room for calls of this host: it has 60B"}));
  say(1, kCaller, hello_of("work", 3, false));
  say(1, kCaller, call_of(20, {2}));
  EXPECT_EQ(told<PostDeliver>(1, kServer).size(), 6U);
}

}  // namespace
}  // namespace monarch
