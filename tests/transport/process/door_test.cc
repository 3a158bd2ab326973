#include "transport/process/door.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/base/clock.h"

namespace monarch {
namespace {

const DoorWords kWords = {.word = "sesame-1234", .answer = "open-5678"};
constexpr Duration kPatience = Duration::seconds(5);

TEST(Door, AnswersWhoeverSaysItsWord) {
  const auto door = Door::open(kWords, 0, 0);
  ASSERT_TRUE(door.ok()) << door.error().message;
  const std::vector<DoorCall> calls(3, {.name = "me", .address = "127.0.0.1", .port = (*door)->port()});
  for (const DoorReached& reached : knock(calls, kWords, kPatience)) EXPECT_EQ(reached.error, "");
}

TEST(Door, SaysNothingToAnotherWordAndIsNotMistakenForAnother) {
  const auto door = Door::open(kWords, 0, 0);
  ASSERT_TRUE(door.ok());
  const DoorCall call{.name = "me", .address = "127.0.0.1", .port = (*door)->port()};
  EXPECT_EQ(knock({call}, {.word = "sesame-0000", .answer = "open-5678"}, kPatience)[0].error,
            "somebody else answers there");
  EXPECT_EQ(knock({call}, {.word = "sesame-1234", .answer = "open-0000"}, kPatience)[0].error,
            "somebody else answers there");
}

TEST(Door, AKnockMayWaitForTheBeginningOfAnAnswerOrForNone) {
  const auto door = Door::open(kWords, 0, 0);
  ASSERT_TRUE(door.ok());
  const DoorCall call{.name = "me", .address = "127.0.0.1", .port = (*door)->port()};
  EXPECT_EQ(knock({call}, {.word = "sesame-1234", .answer = "open-"}, kPatience)[0].error, "");
  EXPECT_EQ(knock({call}, {}, kPatience)[0].error, "");
}

TEST(Door, IsShutWhenItIsGone) {
  auto door = Door::open(kWords, 0, 0);
  ASSERT_TRUE(door.ok());
  const DoorCall call{.name = "me", .address = "127.0.0.1", .port = (*door)->port()};
  door->reset();
  EXPECT_NE(knock({call}, kWords, kPatience)[0].error.find("refused"), std::string::npos);
}

TEST(Door, TakesTheFirstFreePortOfASpan) {
  const auto first = Door::open(kWords, 0, 0);
  ASSERT_TRUE(first.ok());
  const auto taken = Door::open(kWords, (*first)->port(), (*first)->port());
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::kBusy);
}

TEST(Door, ThatNobodyAnswersIsToldInTime) {
  // A listener whose owner never accepts: the kernel does.
  const int mute = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(mute, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(mute, 8), 0);
  ASSERT_EQ(::getsockname(mute, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const DoorCall call{.name = "mute", .address = "127.0.0.1", .port = ntohs(address.sin_port)};
  const auto reached =
      knock({call, {.name = "nobody", .address = "no address", .port = 1}}, kWords, Duration::milliseconds(50));
  EXPECT_EQ(reached[0].error, "no answer within 50ms");
  EXPECT_EQ(reached[1].error, "`no address` is no numeric address");
  ::close(mute);
}

TEST(ForkedWork, ThatHangsIsGivenUp) {
  EXPECT_EQ(answer_within(Duration::milliseconds(50), 100,
                          [] {
                            for (;;) ::pause();
                            return std::string();
                          }),
            std::nullopt);
  EXPECT_EQ(answer_within(kPatience, 100, [] { return std::string("word"); }), "word");
  EXPECT_EQ(answer_within(kPatience, 3, [] { return std::string("word"); }), std::nullopt);
}

}  // namespace
}  // namespace monarch
