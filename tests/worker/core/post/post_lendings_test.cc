// Version 3 of the door: answers that go together, and blocks that are free once nobody reads them.

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "tests/worker/core/post/post_hosts.h"

namespace monarch {
namespace {

constexpr DoorId kSecond{3};  // serves work/1
constexpr std::uint64_t kBlock = 7;

class PostLendings : public PostCoreTest {
 protected:
  explicit PostLendings(PostLimits limits = {}) : PostCoreTest(limits) {}

  static PostHello newest(PostHello hello) {
    hello.version = kPostDoorVersion;
    return hello;
  }
  void begin(std::uint32_t of_the_second = kPostDoorVersion) {
    for (std::uint32_t host = 0; host < 2; ++host) feed(host, post_event::RosterCame{some_roster()});
    say(0, kCaller, newest(hello_of("control", 0, false)));
    say(0, kServer, newest(hello_of("work", 0, true)));
    PostHello second = hello_of("work", 1, true);
    second.version = of_the_second;
    say(0, kSecond, second);
    say(1, kServer, newest(hello_of("work", 2, true)));
    for (Host& host : hosts_) host.done.clear();
  }
  static CallBody lent(std::uint64_t at, std::uint64_t block = kBlock) {
    return {.bytes = 100'000, .way = BodyWay::kBeside, .here = {}, .from = 0, .block = block, .at = BodyId(at)};
  }
  void call_with_block(std::vector<std::uint32_t> ranks, std::uint64_t id = 1) {
    PostCall call = call_of(id, std::move(ranks));
    call.body = lent(100 + id);
    say(0, kCaller, call);
  }
  // The driver lets go what the core has let go. How many blocks are free then, of the first for whom some are.
  std::vector<PostFree> freed(std::uint32_t host, DoorId lender) {
    for (const auto& one : acts<post_action::FreeBody>(host)) {
      if (one.tells && told_.insert({host, one.body}).second) feed(host, post_event::BodyGone{one.body});
    }
    return told<PostFree>(host, lender);
  }
  void reply(DoorId door, std::uint64_t delivery, bool keeps, std::uint64_t block = 0) {
    PostReply reply{.delivery = delivery, .outcome = {}, .keeps = keeps};
    if (block != 0) reply.outcome.body = lent(1'000 + delivery, block);
    say(0, door, reply);
  }
  std::uint64_t delivered(DoorId door) {
    const auto all = told<PostDeliver>(0, door);
    EXPECT_FALSE(all.empty());
    return all.empty() ? 0 : all.back().delivery;
  }

  std::set<std::pair<std::uint32_t, BodyId>> told_;
};

class FewTogether : public PostLendings {
 protected:
  static PostLimits few() {
    PostLimits limits;
    limits.together = 2;
    return limits;
  }
  FewTogether() : PostLendings(few()) {}
};

std::vector<PostFree> sure(std::size_t count = 1) { return std::vector<PostFree>(count, {kBlock, false}); }
std::vector<PostFree> unsure() { return {{kBlock, true}}; }

TEST_F(PostLendings, AnswersByTheLowerOfBothVersions) {
  for (std::uint32_t host = 0; host < 2; ++host) feed(host, post_event::RosterCame{some_roster()});
  for (const auto& [says, hears] : {std::pair(2U, 2U), {3U, 3U}, {9U, kPostDoorVersion}}) {
    PostHello hello = hello_of("control", 0, false);
    hello.version = says;
    const DoorId door(100 + says);
    say(0, door, hello);
    const auto welcomes = told<PostWelcome>(0, door);
    ASSERT_EQ(welcomes.size(), 1U);
    EXPECT_EQ(welcomes[0].version, hears);
  }
}

TEST_F(PostLendings, SaysWhatATurnHasInOnePacket) {
  begin();
  say(0, kCaller, call_of(1, {0, 1}));
  say(0, kCaller, call_of(2, {0}));
  const auto given = told<PostDeliver>(0, kServer);
  ASSERT_EQ(given.size(), 2U);
  const auto answer_of = [&](DoorId door, std::uint64_t delivery) {
    keep(0, hosts_[0].core.step(post_event::DoorSaid{door, PostReply{.delivery = delivery, .outcome = {}}}, now_));
  };
  answer_of(kServer, given[0].delivery);
  answer_of(kServer, given[1].delivery);
  answer_of(kSecond, delivered(kSecond));
  EXPECT_TRUE(told<PostAnswers>(0, kCaller).empty()) << "the turn goes on";
  EXPECT_TRUE(hosts_[0].core.has_answers());
  keep(0, hosts_[0].core.end_turn());
  EXPECT_FALSE(hosts_[0].core.has_answers());
  const auto said = told<PostAnswers>(0, kCaller);
  ASSERT_EQ(said.size(), 1U);
  ASSERT_EQ(said[0].answers.size(), 3U);
  const auto is = [](const SaidAnswer& one, std::uint64_t id, std::uint32_t rank, bool last) {
    return one.id == id && one.rank == rank && one.last == last;
  };
  EXPECT_TRUE(is(said[0].answers[0], 1, 0, false));
  EXPECT_TRUE(is(said[0].answers[1], 2, 0, true));
  EXPECT_TRUE(is(said[0].answers[2], 1, 1, true));
  EXPECT_TRUE(told<PostAnswer>(0, kCaller).empty() && told<PostOver>(0, kCaller).empty());
}

TEST_F(FewTogether, EndsACallOfWhichTheAnswersAreCut) {
  begin();
  for (std::uint64_t id = 1; id <= 5; ++id) say(0, kCaller, call_of(id, {0}));
  for (const PostDeliver& one : told<PostDeliver>(0, kServer)) {
    const PostReply reply{.delivery = one.delivery, .outcome = {}};
    keep(0, hosts_[0].core.step(post_event::DoorSaid{kServer, reply}, now_));
  }
  keep(0, hosts_[0].core.end_turn());
  std::vector<std::size_t> sizes;
  for (const PostAnswers& one : told<PostAnswers>(0, kCaller)) {
    sizes.push_back(one.answers.size());
    for (const SaidAnswer& answer : one.answers) EXPECT_TRUE(answer.last);
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{2, 2, 1}));
}

TEST_F(PostLendings, SaysAnswersBesideAndOfOldDoorsAlone) {
  begin();
  PostCall call = call_of(1, {0, 1});
  say(0, kCaller, call);
  reply(kSecond, delivered(kSecond), false, 4);
  reply(kServer, delivered(kServer), false);
  ASSERT_EQ(told<PostAnswer>(0, kCaller).size(), 1U);
  EXPECT_EQ(told<PostAnswer>(0, kCaller)[0].outcome.body.block, 4U);
  ASSERT_EQ(told<PostAnswers>(0, kCaller).size(), 1U);
  EXPECT_TRUE(told<PostAnswers>(0, kCaller)[0].answers.at(0).last);
  const DoorId old(50);
  say(0, old, hello_of("control", 0, false));
  say(0, old, call_of(1, {0}));
  reply(kServer, delivered(kServer), false);
  EXPECT_EQ(told<PostAnswer>(0, old).size(), 1U);
  EXPECT_EQ(told<PostOver>(0, old).size(), 1U);
}

TEST_F(PostLendings, FreesABlockOnceTheLastReaderHasAnswered) {
  begin();
  call_with_block({0, 1});
  ASSERT_EQ(told<PostDeliver>(0, kServer).size(), 1U);
  EXPECT_EQ(told<PostDeliver>(0, kServer)[0].body.block, kBlock);
  reply(kServer, delivered(kServer), false);
  EXPECT_EQ(freed(0, kCaller), sure(0));
  reply(kSecond, delivered(kSecond), false);
  EXPECT_EQ(told<PostFree>(0, kCaller), sure(0)) << "the post has it still";
  EXPECT_EQ(freed(0, kCaller), sure());
  EXPECT_EQ(hosts_[0].core.lendings(), 0U);
}

TEST_F(PostLendings, FreesABlockThatIsKeptOnceItIsLetGo) {
  begin();
  call_with_block({0});
  const std::uint64_t delivery = delivered(kServer);
  reply(kServer, delivery, true);
  EXPECT_EQ(freed(0, kCaller), sure(0));
  say(0, kSecond, PostLetGo{.delivery = delivery});
  say(0, kServer, PostLetGo{.delivery = delivery + 1});
  EXPECT_EQ(freed(0, kCaller), sure(0)) << "nobody who has it has said so";
  say(0, kServer, PostLetGo{.delivery = delivery});
  EXPECT_EQ(freed(0, kCaller), sure());
  say(0, kServer, PostLetGo{.delivery = delivery});
  EXPECT_EQ(freed(0, kCaller), sure()) << "once";
}

TEST_F(PostLendings, FreesABlockThatWasLentTwiceTwice) {
  begin();
  call_with_block({0}, 1);
  call_with_block({0}, 2);
  for (const PostDeliver& one : told<PostDeliver>(0, kServer)) reply(kServer, one.delivery, false);
  EXPECT_EQ(freed(0, kCaller), sure(2));
}

TEST_F(PostLendings, FreesABlockOfAReaderThatHasLeftWithoutBeingSure) {
  begin();
  call_with_block({0, 1});
  reply(kServer, delivered(kServer), true);
  reply(kSecond, delivered(kSecond), false);
  EXPECT_EQ(freed(0, kCaller), sure(0));
  feed(0, post_event::DoorLeft{kServer});
  EXPECT_EQ(freed(0, kCaller), unsure());
}

TEST_F(PostLendings, IsNotSureOfReadersThatDoNotSayWhatTheyHave) {
  begin(2);
  call_with_block({1});
  EXPECT_EQ(told<PostDeliver>(0, kSecond).at(0).body.block, 0U);
  EXPECT_TRUE(freed(0, kCaller).empty());
  reply(kSecond, delivered(kSecond), false);
  EXPECT_EQ(freed(0, kCaller), unsure());
}

TEST_F(PostLendings, KnowsNoBlocksOfDoorsThatAreOld) {
  begin(2);
  say(0, kCaller, call_of(1, {1}));
  reply(kSecond, delivered(kSecond), false, 5);
  EXPECT_EQ(told<PostAnswer>(0, kCaller).at(0).outcome.body.block, 0U);
  EXPECT_TRUE(freed(0, kSecond).empty());
  EXPECT_EQ(hosts_[0].core.lendings(), 0U);
}

TEST_F(PostLendings, SaysNothingToALenderThatHasLeft) {
  begin();
  call_with_block({0});
  const std::uint64_t delivery = delivered(kServer);
  feed(0, post_event::DoorLeft{kCaller});
  reply(kServer, delivery, false);
  EXPECT_TRUE(freed(0, kCaller).empty());
  EXPECT_EQ(hosts_[0].core.lendings(), 0U);
}

TEST_F(PostLendings, FreesTheBlockOfAnAnswerOnceItsCallerHasLetItGo) {
  begin();
  say(0, kCaller, call_of(9, {0}));
  reply(kServer, delivered(kServer), false, kBlock);
  EXPECT_EQ(freed(0, kServer), sure(0));
  say(0, kCaller, PostLetGo{.delivery = 0, .id = 9, .rank = 1});
  EXPECT_EQ(freed(0, kServer), sure(0));
  say(0, kCaller, PostLetGo{.delivery = 0, .id = 9, .rank = 0});
  EXPECT_EQ(freed(0, kServer), sure());
}

TEST_F(PostLendings, FreesWhatNobodyWasGiven) {
  begin();
  PostCall call = call_of(1, {9});
  call.body = lent(101);
  say(0, kCaller, call);
  EXPECT_EQ(told<PostOver>(0, kCaller).size(), 1U);
  EXPECT_EQ(freed(0, kCaller), sure());
}

TEST_F(PostLendings, IsNotSureOfWhatTooMuchIsReadByADoor) {
  begin();
  for (std::uint64_t id = 1; id <= Lendings::kReadByADoor + 1; ++id) {
    call_with_block({0}, id);
    reply(kServer, delivered(kServer), true);
    hosts_[0].done.clear();
    if (id <= Lendings::kReadByADoor) continue;
    EXPECT_EQ(hosts_[0].core.lendings(), Lendings::kReadByADoor + 1);
    feed(0, post_event::BodyGone{BodyId(100 + id)});
    EXPECT_EQ(told<PostFree>(0, kCaller), unsure());
  }
}

TEST_F(PostLendings, FreesABlockThatWentToAnotherHostOnceItHasGone) {
  begin();
  call_with_block({2});
  connect();
  for (const PostDeliver& one : told<PostDeliver>(1, kServer)) answer(1, one.delivery);
  carry();
  EXPECT_EQ(told<PostFree>(0, kCaller), sure(0));
  EXPECT_EQ(freed(0, kCaller), sure());
}

TEST_F(PostLendings, FreesBlocksOfItsOwnThatCameFromAnotherHost) {
  begin();
  say(0, kCaller, call_of(1, {2}));
  connect();
  carry();
  const std::uint64_t delivery = told<PostDeliver>(1, kServer).at(0).delivery;
  hosts_[1].done.clear();
  LineAsks asks;
  asks.ends = {HostId(0), {1, 1}, {1, 1}};
  asks.first = 2;
  asks.mesh = MeshId(0);
  asks.ranks = {{Rank(2), false}};
  asks.target = {"greeter", "say_hello", "s->s"};
  asks.body = lent(500, 3);
  feed(1, post_event::PeerSaid{HostId(0), asks});
  const auto given = told<PostDeliver>(1, kServer);
  ASSERT_EQ(given.size(), 1U);
  EXPECT_EQ(given[0].body.block, 3U);
  answer(1, delivery);
  answer(1, given[0].delivery);
  (void)freed(1, kServer);
  const auto blocks = acts<post_action::FreeBlock>(1);
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].free, (PostFree{3, false}));
}

TEST_F(PostLendings, SaysAnswersOfALineTogetherToWhoHearsThem) {
  for (const std::uint32_t version : {2U, 1U}) {
    hosts_.clear();
    hosts_.emplace_back(0, PostLimits());
    hosts_.emplace_back(1, PostLimits());
    begin();
    LineHello hello{.ends = {HostId(0), {1, 1}, {}}, .target = {}, .epoch = 1, .low = 1, .heard = 0};
    hello.version = version;
    feed(1, post_event::PeerSaid{HostId(0), hello});
    hosts_[1].to_peer.clear();
    LineAsks asks;
    asks.ends = {HostId(0), {1, 1}, {1, 1}};
    asks.mesh = MeshId(0);
    asks.ranks = {{Rank(0), true}, {Rank(0), true}, {Rank(0), true}};
    feed(1, post_event::PeerSaid{HostId(0), asks});
    ASSERT_EQ(hosts_[1].to_peer.size(), version == 1 ? 3U : 1U);
    const auto& first = hosts_[1].to_peer.front().message;
    EXPECT_EQ(std::holds_alternative<LineAnswer>(first), version == 1);
    hello.epoch = 2;
    hosts_[1].to_peer.clear();
    feed(1, post_event::PeerSaid{HostId(0), hello});
    EXPECT_EQ(hosts_[1].to_peer.size(), version == 1 ? 4U : 2U) << "said again, behind what is accepted";
  }
}

}  // namespace
}  // namespace monarch
