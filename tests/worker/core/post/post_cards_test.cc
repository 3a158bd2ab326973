// Cards at a post: who gets them, from where, and who waits for them.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tests/worker/core/post/post_hosts.h"
#include "transport/base/sha256.h"

namespace monarch {
namespace {

class PostCards : public PostCoreTest {
 protected:
  explicit PostCards(PostLimits limits = {}) : PostCoreTest(limits) {}
  static PostCall ask_of(std::uint64_t id, std::uint32_t rank, std::uint64_t since = 0) {
    PostCall call;
    call.id = id;
    call.mesh = "work";
    call.ranks = {{.first = rank, .count = 1, .step = 1}};
    call.target = {kCardsActor, "tensors", std::to_string(since)};
    return call;
  }
  static PostCard card_of(std::uint64_t body, const std::string& name = "tensors", std::uint64_t bytes = 100) {
    return {.name = name, .text = {.bytes = bytes, .way = BodyWay::kNone, .here = {}, .at = BodyId(body)}};
  }
  // The body of the card that a call was answered with.
  std::uint64_t card(std::uint32_t host, DoorId door, std::uint64_t id) {
    for (const PostAnswer& answer : told<PostAnswer>(host, door)) {
      if (answer.id == id) return answer.outcome.body.at.value();
    }
    return 0;
  }
  std::string why(std::uint32_t host, DoorId door, std::uint64_t id) {
    for (const PostAnswer& answer : told<PostAnswer>(host, door)) {
      if (answer.id == id && answer.outcome.kind != OutcomeKind::kValue) return answer.outcome.text;
    }
    return {};
  }
  // Rank work/2 of host 1, at a door of its own.
  static constexpr DoorId kOwner{7};
};

TEST_F(PostCards, AreGivenToWhoAsksNowOrLater) {
  begin();
  say(1, kOwner, hello_of("work", 2, false));
  say(0, kCaller, ask_of(1, 2));
  connect();
  EXPECT_TRUE(told<PostAnswer>(0, kCaller).empty()) << "there is none yet";
  say(1, kOwner, card_of(900));
  carry();
  EXPECT_EQ(card(0, kCaller, 1), 900U);
  EXPECT_EQ(told<PostAnswer>(0, kCaller)[0].outcome.generation, 1U);
  EXPECT_EQ(told<PostOver>(0, kCaller).size(), 1U);
  say(0, kCaller, ask_of(2, 2));
  say(0, kCaller, ask_of(3, 2, 1));
  carry();
  EXPECT_EQ(card(0, kCaller, 2), 900U) << "at once";
  EXPECT_EQ(told<PostAnswer>(0, kCaller).size(), 2U) << "whoever has that one waits for the next generation's";
  EXPECT_TRUE(told<PostDeliver>(1, kServer).empty()) << "no rank is asked";
  EXPECT_EQ(hosts_[1].core.bodies(), 1U);
  feed(1, post_event::DoorLeft{kOwner});
  carry();
  say(0, kCaller, ask_of(4, 2));
  carry();
  EXPECT_EQ(told<PostAnswer>(0, kCaller).size(), 2U) << "it went with its connection";
  say(1, kOwner, hello_of("work", 2, false, 2));
  say(1, kOwner, card_of(901));
  carry();
  EXPECT_EQ(card(0, kCaller, 3), 901U);
  EXPECT_EQ(card(0, kCaller, 4), 901U);
}

// By it the card's owner knows which rank comes to it.
TEST_F(PostCards, WithAKeyGiveEachWhoAsksASecretOfHisOwn) {
  begin();
  const DoorId other{8};
  const std::string key(kPersonalSecretBytes, 'k');
  say(1, kOwner, hello_of("work", 2, false));
  PostCard card = card_of(900);
  card.key.data = key;
  say(1, kOwner, card);
  say(1, other, hello_of("work", 2, false));
  say(1, other, ask_of(1, 2));
  say(0, DoorId(3), hello_of("work", 0, false));
  say(0, DoorId(3), ask_of(1, 2));
  connect();
  carry();
  const auto personal = [&](std::uint32_t host, DoorId door) { return told<PostAnswer>(host, door).at(0).outcome; };
  EXPECT_EQ(personal(1, other).personal.data, personal_secret(key, "work", 2, 1));
  EXPECT_EQ(personal(0, DoorId(3)).personal.data, personal_secret(key, "work", 0, 1)) << "from another host";
  say(0, kCaller, ask_of(2, 2));
  carry();
  EXPECT_EQ(told<PostAnswer>(0, kCaller).at(0).outcome.personal.data, personal_secret(key, "control", 0, 1));
  card.key.data = "short";
  say(1, kOwner, card);
  EXPECT_EQ(closed(1).back(), "a card's key has 32 bytes, and not 5");
}

TEST_F(PostCards, OfAnEarlierGenerationAreNobodys) {
  begin();
  say(0, DoorId(3), hello_of("work", 0, false));
  say(0, DoorId(3), card_of(900));
  Roster later = some_roster(2);
  later.runs[0].generation.counter = 2;
  feed(0, post_event::RosterCame{later});
  say(0, kCaller, ask_of(1, 0));
  EXPECT_TRUE(told<PostAnswer>(0, kCaller).empty());
  say(0, DoorId(3), card_of(902));
  EXPECT_EQ(closed(0), std::vector<std::string>{"a later start of work/0 has its place"});
  say(0, DoorId(4), hello_of("work", 0, false, 2));
  say(0, DoorId(4), card_of(901));
  EXPECT_EQ(card(0, kCaller, 1), 901U);
}

TEST_F(PostCards, OfARankThatIsStartedAgainElsewhereAreWaitedFor) {
  begin();
  say(0, kCaller, ask_of(1, 2));
  connect();
  Roster down = some_roster(2);
  down.runs[1].state = RosterState::kDown;
  feed(0, post_event::RosterCame{down});
  say(0, kCaller, ask_of(2, 2));
  carry();
  EXPECT_TRUE(told<PostAnswer>(0, kCaller).empty()) << "it is down, and comes again";
  Roster moved = some_roster(3);
  moved.runs[1].host = HostId(0);
  moved.runs[1].generation.counter = 2;
  say(0, DoorId(3), hello_of("work", 2, false, 2));
  say(0, DoorId(3), card_of(900));
  feed(0, post_event::RosterCame{moved});
  EXPECT_EQ(card(0, kCaller, 1), 900U);
  EXPECT_EQ(card(0, kCaller, 2), 900U);
  carry();
  say(1, kOwner, hello_of("work", 2, false));
  say(1, kOwner, card_of(901));
  carry();
  EXPECT_EQ(told<PostAnswer>(0, kCaller).size(), 2U) << "what was asked there is taken back";
}

TEST_F(PostCards, OfARankWhoseHostIsLostAreWaitedFor) {
  begin();
  say(0, kCaller, ask_of(1, 2));
  connect();
  Roster lost = some_roster(2);
  lost.hosts.pop_back();
  lost.runs[1].state = RosterState::kDown;
  feed(0, post_event::RosterCame{lost});
  EXPECT_TRUE(told<PostAnswer>(0, kCaller).empty());
  EXPECT_TRUE(told<PostOver>(0, kCaller).empty());
  say(0, DoorId(8), hello_of("", 0, false));
  say(0, DoorId(8), ask_of(1, 2));
  feed(0, post_event::DoorLeft{DoorId(8)});
  Roster moved = some_roster(3);
  moved.runs[1].host = HostId(0);
  moved.runs[1].generation.counter = 2;
  feed(0, post_event::RosterCame{moved});
  say(0, DoorId(3), hello_of("work", 2, false, 2));
  say(0, DoorId(3), card_of(900));
  EXPECT_EQ(card(0, kCaller, 1), 900U);
  EXPECT_TRUE(told<PostAnswer>(0, DoorId(8)).empty());
}

TEST_F(PostCards, AreAskedForAgainWhereThePostWasStartedAgain) {
  begin();
  say(0, kCaller, ask_of(1, 2));
  connect();
  const PostStart before{1, 1};
  const PostStart now{1, 2};
  feed(0, post_event::PeerDown{HostId(1)});
  feed(0, post_event::PeerUp{HostId(1)});
  const auto hello = std::get<LineHello>(hosts_[0].to_peer.back().message);
  hosts_[0].to_peer.clear();
  feed(0, post_event::PeerSaid{HostId(1), LineOther{{HostId(0), before, now}, hello.epoch}});
  EXPECT_TRUE(told<PostOver>(0, kCaller).empty()) << "a call would be gone";
  EXPECT_EQ(hosts_[0].core.calls(), 1U);
}

TEST_F(PostCards, OfARankThatHasAnsweredAreNotAskedForAgain) {
  begin();
  PostCall both = ask_of(1, 0);
  both.ranks.push_back({.first = 1, .count = 1, .step = 1});
  say(0, kCaller, both);
  say(0, DoorId(3), hello_of("work", 0, false));
  say(0, DoorId(3), card_of(900));
  EXPECT_EQ(card(0, kCaller, 1), 900U);
  Roster moved = some_roster(2);
  moved.runs[0].count = 1;
  moved.runs[0].host = HostId(1);
  moved.runs[0].generation.counter = 2;
  moved.runs.insert(moved.runs.begin() + 1, some_roster().runs[0]);
  moved.runs[1].first = Rank(1);
  moved.runs[1].count = 1;
  feed(0, post_event::RosterCame{moved});
  EXPECT_TRUE(acts<post_action::Dial>(0).empty()) << "rank 0 has answered, rank 1 is here";
  EXPECT_EQ(told<PostAnswer>(0, kCaller).size(), 1U);
}

TEST_F(PostCards, OfARankThatIsGivenUpAreNotWaitedFor) {
  begin();
  say(0, kCaller, ask_of(1, 0));
  Roster over = some_roster(2);
  over.runs[0].state = RosterState::kGivenUp;
  feed(0, post_event::RosterCame{over});
  EXPECT_EQ(why(0, kCaller, 1), "it is given up");
  say(0, kCaller, ask_of(2, 0));
  EXPECT_EQ(why(0, kCaller, 2), "it is given up");
}

// So that whoever pulls from it is told that it is over, and not that something has failed.
TEST_F(PostCards, OfARankThatHasDoneWhatItWasForAreRefused) {
  begin();
  say(0, kCaller, ask_of(1, 0));
  Roster over = some_roster(2);
  over.runs[0].state = RosterState::kEnded;
  feed(0, post_event::RosterCame{over});
  say(0, kCaller, ask_of(2, 0));
  const auto answers = told<PostAnswer>(0, kCaller);
  ASSERT_EQ(answers.size(), 2U);
  for (const PostAnswer& answer : answers) {
    EXPECT_EQ(answer.outcome.kind, OutcomeKind::kRefused);
    EXPECT_EQ(answer.outcome.text, "it has ended");
  }
}

TEST_F(PostCards, AreTakenBackFromWhoWaitsNoMore) {
  begin();
  PostCall timed = ask_of(1, 0);
  timed.deadline = now_ + Duration::seconds(1);
  say(0, kCaller, timed);
  say(0, kCaller, ask_of(2, 0));
  now_ = now_ + Duration::seconds(2);
  feed(0, post_event::Tick{});
  EXPECT_EQ(told<PostAnswer>(0, kCaller)[0].outcome.kind, OutcomeKind::kDeadline);
  say(0, kCaller, PostCancel{2});
  EXPECT_EQ(told<PostOver>(0, kCaller).size(), 2U);
  say(0, DoorId(3), hello_of("work", 0, false));
  say(0, DoorId(3), card_of(900));
  EXPECT_EQ(told<PostAnswer>(0, kCaller).size(), 2U);
  say(0, DoorId(3), card_of(0, "tensors", 0));
  EXPECT_EQ(hosts_[0].core.bodies(), 0U) << "an empty one takes it away";
}

class FewCards : public PostCards {
 protected:
  FewCards() : PostCards(few()) {}
  static PostLimits few() {
    PostLimits limits;
    limits.card_asks = 8;
    return limits;
  }
};

TEST_F(FewCards, LeaveRoomForThoseOfOtherHostsWhoAsk) {
  begin();
  for (std::uint64_t id = 1; id <= 6; ++id) say(0, kCaller, ask_of(id, id % 2 == 0 ? 2 : 3));
  connect();
  const auto busy = told<PostAnswer>(0, kCaller);
  ASSERT_EQ(busy.size(), 2U) << "a half of all may wait";
  EXPECT_EQ(end_of(busy[0]), (End{OutcomeKind::kBusy, "4 calls of this host wait for cards there"}));
  say(1, kCaller, hello_of("work", 3, false));
  say(1, kCaller, ask_of(1, 2));
  EXPECT_TRUE(told<PostAnswer>(1, kCaller).empty()) << "it waits";
  // Whoever has it is answered at once, however many wait.
  say(1, kOwner, hello_of("work", 2, false));
  say(1, kOwner, card_of(900));
  say(0, kCaller, ask_of(7, 2));
  carry();
  EXPECT_EQ(told<PostAnswer>(0, kCaller).back().outcome.kind, OutcomeKind::kValue);
}

TEST_F(PostCards, HaveLimits) {
  const auto refused = [&](const PostHello& hello, const std::vector<PostCard>& cards) {
    hosts_[0].done.clear();
    const DoorId door(50);
    say(0, door, hello);
    for (const PostCard& card : cards) say(0, door, card);
    feed(0, post_event::DoorLeft{door});
    const auto all = closed(0);
    return all.empty() ? std::string() : all.front();
  };
  begin();
  const PostHello rank = hello_of("work", 0, false);
  EXPECT_EQ(refused(hello_of("", 0, false), {card_of(900)}), "only a rank of the job has cards");
  EXPECT_EQ(refused(hello_of("work", 1, true), {card_of(900)}), "it has not come as a caller");
  EXPECT_EQ(refused(rank, {card_of(900, "", 1)}), "a card's name has 1 to 64 bytes, and not 0");
  EXPECT_EQ(refused(rank, {card_of(900, "a", 513)}), "the cards of a rank have 512 bytes at most");
  EXPECT_EQ(refused(rank, {card_of(900, "a", 256), card_of(901, "b", 257)}),
            "the cards of a rank have 512 bytes at most");
  EXPECT_EQ(refused(rank, {card_of(900, "a", 512), card_of(901, "a", 512)}), "") << "in its place";
  EXPECT_EQ(refused(rank, {card_of(1, "a", 1), card_of(2, "b", 1), card_of(3, "c", 1), card_of(4, "d", 1),
                           card_of(5, "e", 1)}),
            "a rank has 4 cards at most");
  EXPECT_EQ(hosts_[0].core.bodies(), 0U);
  say(0, DoorId(3), rank);
  say(0, DoorId(3), card_of(900));
  EXPECT_EQ(refused(rank, {card_of(901)}), "another connection of its rank has put that card");
  PostCall odd = ask_of(1, 0);
  odd.target.signature = "1x";
  say(0, kCaller, odd);
  EXPECT_EQ(told<PostOver>(0, kCaller)[0].refused, "the signature of @cards is a generation");
}

}  // namespace
}  // namespace monarch
