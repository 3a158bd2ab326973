#include "transport/wire/check_stream.h"
#include "transport/messages/check.h"
#include "transport/wire/codec.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

TEST(CheckPieces, AreTakenOneByOneAndOnlyWhole) {
  std::string stream = encode_piece("one") + encode_piece("") + encode_piece("three");
  std::string come;
  std::vector<std::string> taken;
  for (const char byte : stream) {
    come += byte;
    const auto piece = take_piece(come);
    ASSERT_TRUE(piece.ok());
    if (*piece) taken.push_back(**piece);
  }
  EXPECT_EQ(taken, (std::vector<std::string>{"one", "", "three"}));
  EXPECT_EQ(come, "");
}

TEST(CheckPieces, OfSomebodyElseAreRefused) {
  for (std::string bytes : {"Welcome to the machine\n", "-1\n", "\n", "12345678", "9999999\n", "1x\nab"}) {
    const auto piece = take_piece(bytes);
    EXPECT_FALSE(piece.ok()) << bytes;
  }
}

TEST(CheckMessages, ComeBackAsTheyWere) {
  CheckAnswer answer;
  answer.received = WallTime{1};
  answer.facts =
      HostFacts{.files = {.soft = 1024, .hard = kUnlimited}, .ptrace_scope = 2, .orphans = {{.pids = {7, 8}}}};
  answer.calls = {{{"login", "10.0.0.1", 7000}, "refused"}};
  const auto back = decode_payload<CheckAnswer>(encode_payload(answer), kCheckBytes);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->received, answer.received);
  EXPECT_EQ(back->facts->files, answer.facts->files);
  EXPECT_EQ(back->facts->ptrace_scope, 2U);
  EXPECT_EQ(back->facts->orphans.at(0).pids, (std::vector<std::int32_t>{7, 8}));
  EXPECT_EQ(back->calls.at(0).error, "refused");
}

}  // namespace
}  // namespace monarch
