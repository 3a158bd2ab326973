// Guests that serve: they are called by numbers that their post gives them, and end with their connections.

#include <set>

#include "tests/worker/core/post/post_hosts.h"

namespace monarch {
namespace {

constexpr DoorId kGuest{50};

class PostGuests : public PostCoreTest {
 protected:
  // Its number.
  std::uint32_t come(std::uint32_t host, DoorId door) {
    PostHello hello = hello_of("", 0, true, 0);
    hello.version = kPostDoorVersion;
    say(host, door, hello);
    const auto welcomes = told<PostWelcome>(host, door);
    return welcomes.empty() ? 0 : welcomes.back().guest;
  }
  static PostCall call_guest(std::uint64_t id, std::vector<std::uint32_t> numbers, const std::string& host = {}) {
    PostCall call = call_of(id, std::move(numbers));
    call.mesh = kGuestsMesh;
    call.host = host;
    return call;
  }
  void reply(std::uint32_t host, DoorId door, std::uint64_t delivery) {
    say(host, door, PostReply{.delivery = delivery, .outcome = {}});
  }
  std::vector<End> ends(DoorId door = kCaller) {
    std::vector<End> all;
    for (const PostAnswer& one : told<PostAnswer>(0, door)) all.push_back(end_of(one));
    return all;
  }
  std::string refused(const PostCall& call) {
    hosts_[0].done.clear();
    say(0, kCaller, call);
    const auto over = told<PostOver>(0, kCaller);
    return over.empty() ? "nothing" : over[0].refused;
  }
};

TEST_F(PostGuests, AreCalledByTheNumberOfTheirWelcome) {
  begin();
  EXPECT_EQ(come(0, kGuest), 1U);
  EXPECT_EQ(come(0, DoorId(51)), 2U);
  say(0, kCaller, call_guest(1, {1}));
  say(0, kCaller, call_guest(2, {2}, "h0"));
  const auto first = told<PostDeliver>(0, kGuest);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].caller, (CallerName{"control", {MeshId(1), Rank(0)}, 1}));
  EXPECT_EQ(told<PostDeliver>(0, DoorId(51)).size(), 1U);
  reply(0, kGuest, first[0].delivery);
  const auto answers = told<PostAnswer>(0, kCaller);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].rank, 1U);
  EXPECT_EQ(answers[0].outcome.kind, OutcomeKind::kValue);
  EXPECT_EQ(answers[0].outcome.generation, 1U) << "0 says that no process has run it";
  EXPECT_EQ(told<PostOver>(0, kCaller).size(), 1U);
}

TEST_F(PostGuests, OfAnotherHostAreAskedByItsPost) {
  begin();
  const std::uint32_t number = come(1, kGuest);
  (void)come(0, kGuest);  // of the same number
  say(0, kCaller, call_guest(1, {number}, "h1"));
  connect();
  carry();
  EXPECT_TRUE(told<PostDeliver>(0, kGuest).empty());
  const auto given = told<PostDeliver>(1, kGuest);
  ASSERT_EQ(given.size(), 1U);
  reply(1, kGuest, given[0].delivery);
  carry();
  EXPECT_EQ(ends(), (std::vector<End>{{OutcomeKind::kValue, ""}}));
  // Each has a window of its own at both.
  for (std::uint64_t id = 10; id < 10 + kWindowCalls; ++id) say(0, kCaller, call_guest(id, {number}, "h1"));
  say(0, kCaller, call_guest(5'000, {number}, "h0"));
  EXPECT_EQ(told<PostDeliver>(0, kGuest).size(), 1U);
}

TEST_F(PostGuests, EndWithTheirConnectionsAndLeaveNothingBehind) {
  begin();
  const std::uint32_t near = come(0, kGuest);
  const std::uint32_t far = come(1, kGuest);
  say(0, kCaller, call_guest(1, {near}));
  say(0, kCaller, call_guest(2, {far}, "h1"));
  connect();
  carry();
  for (std::uint32_t host = 0; host < 2; ++host) {
    feed(host, post_event::DoorLeft{kGuest});
    EXPECT_EQ(hosts_[host].core.guests(), 0U);
    EXPECT_EQ(hosts_[host].core.deliveries(), 0U);
  }
  carry();
  const End left{OutcomeKind::kRankLost, "it has left"};
  EXPECT_EQ(ends(), (std::vector<End>{left, left}));
  say(0, kCaller, call_guest(3, {near}));
  say(0, kCaller, call_guest(4, {far}, "h1"));
  say(0, kCaller, call_guest(5, {near + 1, near + 2}));
  carry();
  const End none{OutcomeKind::kRankLost, "there is no such guest"};
  EXPECT_EQ(ends(), (std::vector<End>{left, left, left, none, none, left}));
}

TEST_F(PostGuests, HaveNumbersThatNobodyHadBefore) {
  begin();
  std::set<std::uint32_t> numbers;
  for (std::uint64_t i = 0; i < 3'000; ++i) {
    EXPECT_TRUE(numbers.insert(come(0, kGuest)).second);
    feed(0, post_event::DoorLeft{kGuest});
    hosts_[0].done.clear();
  }
  EXPECT_EQ(*numbers.begin(), 1U);
  for (const PostStart start : {PostStart{1, 2}, PostStart{2, 1}, PostStart{(7ULL << 40U) + 123'456, 1}}) {
    Guests later(start);
    EXPECT_TRUE(numbers.insert(later.came(kGuest).rank.value()).second) << "of an earlier start of the post";
  }
}

TEST_F(PostGuests, ServeAndDoNothingElse) {
  begin();
  (void)come(0, kGuest);
  say(0, kGuest, call_guest(1, {1}));
  EXPECT_EQ(closed(0), std::vector<std::string>{"it has not come as a caller"});
  PostHello hello = hello_of("", 0, false, 0);
  hello.version = kPostDoorVersion;
  say(0, DoorId(60), hello);
  EXPECT_EQ(told<PostWelcome>(0, DoorId(60)).at(0).guest, 0U);
  hosts_[0].done.clear();
  say(0, DoorId(60), PostWait{.id = 1, .actor = "a"});
  EXPECT_EQ(closed(0), std::vector<std::string>{"only a rank of the job has actors that wait"});
}

TEST_F(PostGuests, OfAHostThatIsLostAreLost) {
  begin();
  const std::uint32_t number = come(1, kGuest);
  say(0, kCaller, call_guest(1, {number}, "h1"));
  Roster roster = some_roster(2);
  roster.hosts.pop_back();
  roster.runs[1].host = HostId(0);
  feed(0, post_event::RosterCame{roster});
  say(0, kCaller, call_guest(2, {number}, "h1"));
  const End lost{OutcomeKind::kRankLost, "its host is none of the job"};
  EXPECT_EQ(ends(), (std::vector<End>{lost, lost}));
  roster = some_roster(3);
  roster.hosts[1].without_post = "it has no room";
  feed(0, post_event::RosterCame{roster});
  hosts_[0].done.clear();
  say(0, kCaller, call_guest(3, {number}, "h1"));
  EXPECT_EQ(ends(), (std::vector<End>{{OutcomeKind::kGone, "no post on h1: it has no room"}}));
}

TEST_F(PostGuests, AreRefusedWhatTheyDoNotHave) {
  begin();
  (void)come(0, kGuest);
  PostCall card = call_guest(1, {1});
  card.target = {kCardsActor, "c", "0"};
  EXPECT_EQ(refused(card), "a guest has no cards");
  PostCall many = call_guest(2, {});
  many.ranks = {{.first = 1, .count = 0x7fff'0000, .step = 1}, {.first = 0, .count = 0x7fff'0000, .step = 0}};
  EXPECT_EQ(refused(many), "the call names 4294836224 guests, and 4096 are the most");
  EXPECT_EQ(refused(call_guest(3, {0x8000'0000U})), "there is no guest of a number like 2147483648");
  EXPECT_EQ(refused(call_guest(4, {1}, std::string(256, 'h'))),
            "the name of its host is 256 bytes long, and 255 are the most");
  PostCall rank = call_of(5, {0});
  rank.host = "h1";
  EXPECT_EQ(refused(rank), "the call names host h1, and work is a mesh of the job, whose ranks are where they are");
}

// What another host's post says is whatever it likes.
TEST_F(PostGuests, AreRefusedToAHostThatAsksForTheirCards) {
  begin();
  (void)come(1, kGuest);
  const LineEnds ends{HostId(0), {1, 1}, {1, 1}};
  feed(1, post_event::PeerSaid{HostId(0), LineHello{.ends = ends, .target = {}, .epoch = 1}});
  LineAsks asks{.ends = ends, .first = 1, .heard = 0, .mesh = kGuestsMeshId, .ranks = {{Rank(1), false}}};
  asks.target = {kCardsActor, "c", "0"};
  feed(1, post_event::PeerSaid{HostId(0), asks});
  ASSERT_FALSE(hosts_[1].to_peer.empty());
  const auto* const answer = std::get_if<LineAnswer>(&hosts_[1].to_peer.back().message);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->outcome.kind, OutcomeKind::kRefused);
  EXPECT_EQ(answer->outcome.text, "a guest has no cards");
}

}  // namespace
}  // namespace monarch
