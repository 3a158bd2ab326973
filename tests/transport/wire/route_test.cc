#include <gtest/gtest.h>

#include <string>

#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"
#include "transport/wire/messages.h"

namespace monarch {
namespace {

TEST(Route, GivesAMessageToWhoIsForIt) {
  const Frame frame = frame_of(KeeperPing{.number = 7}, {.seq = 3});
  EXPECT_EQ(frame.header.seq, 3U);
  EXPECT_TRUE(is_a<KeeperPing>(frame.header));
  std::uint64_t pinged = 0;
  std::uint64_t ponged = 0;
  const Status taken =
      route(frame.header, frame.payload, when<KeeperPong>([&](const KeeperPong& pong) { ponged = pong.number; }),
            when<KeeperPing>([&](const KeeperPing& ping) { pinged = ping.number; }));
  EXPECT_TRUE(taken.ok());
  EXPECT_EQ(pinged, 7U);
  EXPECT_EQ(ponged, 0U);
}

TEST(Route, SaysThatNobodyIsForIt) {
  const Frame frame = frame_of(KeeperPing{});
  const Status taken = route(frame.header, frame.payload, when<KeeperPong>([](const KeeperPong&) { FAIL(); }));
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::kUnsupported);
}

TEST(Route, GivesNobodyWhatCannotBeRead) {
  const Frame frame{{.type = number_of<KeeperPing>()}, "junk"};
  const Status taken = route(frame.header, frame.payload, when<KeeperPing>([](const KeeperPing&) { FAIL(); }));
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::kInvalid);
}

TEST(Route, AnswersAsItsTakerDoes) {
  const Frame frame = frame_of(KeeperPing{});
  const Status taken = route(frame.header, frame.payload, when<KeeperPing>([](const KeeperPing&) -> Status {
                               return Error{ErrorCode::kBusy, "not now"};
                             }));
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::kBusy);
}

TEST(Route, PassesOnUnopenedWhateverIsInItUpToItsBound) {
  Frame frame{{.type = number_of<Stop>()}, "what no daemon reads"};
  std::string passed;
  const auto pass = [&] {
    return route(frame.header, frame.payload,
                 unopened<Signal, Stop>([&](std::string_view payload) { passed = std::string(payload); }));
  };
  EXPECT_TRUE(pass().ok());
  EXPECT_EQ(passed, frame.payload);
  frame.payload.assign(limits::kControlPayloadBytes + 1, 'x');
  const Status taken = pass();
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace monarch
