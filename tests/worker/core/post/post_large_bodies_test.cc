// Bodies that are too large for other hosts.

#include "tests/worker/core/post/post_hosts.h"

namespace monarch {
namespace {

class LargeBodies : public PostCoreTest {
 protected:
  static constexpr std::uint64_t kLarge = 700U << 20U;
  static PostCall large_call(std::uint64_t id, std::vector<std::uint32_t> ranks, std::uint64_t bytes = kLarge) {
    PostCall call = call_of(id, std::move(ranks));
    call.body.bytes = bytes;
    return call;
  }
  void reply_with(std::uint32_t host, std::uint64_t delivery, std::uint64_t bytes) {
    PostReply reply;
    reply.delivery = delivery;
    reply.outcome.body = {.bytes = bytes, .way = BodyWay::kNone, .here = {}, .at = BodyId(900 + delivery)};
    say(host, kServer, reply);
  }
};

TEST_F(LargeBodies, GoOnOneHostAlone) {
  begin();
  say(0, kCaller, large_call(1, {0, 2}));
  ASSERT_EQ(told<PostDeliver>(0, kServer).size(), 1U);
  EXPECT_EQ(told<PostDeliver>(0, kServer)[0].body.bytes, kLarge);
  EXPECT_TRUE(hosts_[0].to_peer.empty());
  EXPECT_EQ(
      end_of(told<PostAnswer>(0, kCaller).at(0)),
      (End{OutcomeKind::kRefused, "its arguments are 700MiB: a call carries 1GiB at most, 64MiB to another host"}));
  say(0, kCaller, large_call(2, {2}, kFarBodyBytes));
  connect();
  carry();
  EXPECT_EQ(told<PostDeliver>(1, kServer).size(), 1U);
}

TEST_F(LargeBodies, ComeBackOnOneHostAlone) {
  begin();
  say(0, kCaller, call_of(1, {0, 2}));
  connect();
  carry();
  reply_with(0, told<PostDeliver>(0, kServer).at(0).delivery, kLarge);
  EXPECT_EQ(told<PostAnswer>(0, kCaller).at(0).outcome.body.bytes, kLarge);
  reply_with(1, told<PostDeliver>(1, kServer).at(0).delivery, kLarge);
  carry();
  const PostAnswer far = told<PostAnswer>(0, kCaller).at(1);
  EXPECT_EQ(end_of(far), (End{OutcomeKind::kRefused,
                              "it has run, and its result is 700MiB: a call carries 1GiB at most, 64MiB to another "
                              "host"}));
  EXPECT_EQ(far.outcome.body.bytes, 0U);
  EXPECT_EQ(hosts_[1].core.bodies(), 0U);
  say(0, kCaller, call_of(2, {0}));
  reply_with(0, told<PostDeliver>(0, kServer).at(1).delivery, kBodyBytes + 1);
  EXPECT_EQ(end_of(told<PostAnswer>(0, kCaller).at(2)),
            (End{OutcomeKind::kRefused,
                 "it has run, and its result is 1GiB: a call carries 1GiB at most, 64MiB to another host"}));
}

// However few bytes a caller, an actor and a rank may have under way, one such body goes, and others beside it.
TEST_F(LargeBodies, AreOneAtATimeOfACaller) {
  begin();
  say(0, DoorId(4), hello_of("control", 0, false));
  say(0, kCaller, call_of(1, {0}));
  say(0, kCaller, large_call(2, {0}));
  EXPECT_EQ(acts<post_action::HoldDoor>(0).size(), 1U);
  say(0, DoorId(4), call_of(3, {0}));
  ASSERT_EQ(told<PostDeliver>(0, kServer).size(), 3U);
  EXPECT_TRUE(told<PostAnswer>(0, DoorId(4)).empty());
  answer(0, told<PostDeliver>(0, kServer)[1].delivery);
  EXPECT_EQ(acts<post_action::ReadDoor>(0).size(), 1U);
}

TEST_F(LargeBodies, AreBusyWhereThatManyAreThere) {
  begin();
  say(0, DoorId(3), hello_of("work", 1, true));
  for (const std::uint32_t door : {10U, 11U, 12U, 13U}) say(0, DoorId(door), hello_of("control", 0, false));
  say(0, DoorId(10), large_call(10, {0}));
  say(0, DoorId(11), large_call(11, {0}, kBodyBytes - kLarge));
  say(0, DoorId(12), large_call(12, {1}, kBodyBytes));
  EXPECT_EQ(told<PostDeliver>(0, DoorId(3)).size(), 1U);
  say(0, DoorId(13), large_call(13, {1}));
  EXPECT_EQ(end_of(told<PostAnswer>(0, DoorId(13)).at(0)),
            (End{OutcomeKind::kBusy, "the post of its host has no room: it has 2.6GiB of calls and answers"}));
  say(0, kCaller, call_of(1, {1}));
  EXPECT_EQ(told<PostDeliver>(0, DoorId(3)).size(), 2U) << "what is small has room all the same";
}

}  // namespace
}  // namespace monarch
