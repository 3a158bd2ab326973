// What is said on a link: the hello and its proofs, and frames.

#include <gtest/gtest.h>

#include <string>

#include "transport/tensor/core/hello.h"
#include "transport/tensor/core/index.h"
#include "transport/tensor/frames.h"

namespace monarch::tensor {
namespace {

const std::string kSecret(32, 's');

HelloAsk some_ask() {
  HelloAsk ask;
  ask.reader = {"generator", 2, 4};
  ask.publication = "weights";
  ask.owner = {"trainer", 3, 7};
  ask.nonce.data = std::string(kNonceBytes, 'a');
  return ask;
}
const LinkRank kOwner{"trainer", 3, 7};
const std::string kNonce(kNonceBytes, 'b');

TEST(Hello, IsProvenByBothWhoKnowTheSecret) {
  const HelloAsk ask = some_ask();
  const auto answer = answer_hello(ask, kOwner, kSecret, kNonce);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  const auto proof = prove_hello(ask, *answer, kSecret);
  ASSERT_TRUE(proof.ok());
  EXPECT_TRUE(is_proven(ask, *answer, *proof, kSecret));
  EXPECT_FALSE(is_proven(ask, *answer, *proof, std::string(32, 't')));
  EXPECT_FALSE(is_proven(ask, *answer, {answer->proof}, kSecret)) << "what the owner says proves nothing of the reader";
  HelloAsk other = ask;
  other.reader.generation = 5;
  EXPECT_FALSE(is_proven(other, *answer, *proof, kSecret));
}

TEST(Hello, IsNoneFromWhoHasAnotherSecret) {
  const HelloAsk ask = some_ask();
  const auto answer = answer_hello(ask, kOwner, std::string(32, 't'), kNonce);
  EXPECT_EQ(prove_hello(ask, *answer, kSecret).error().message, "who answers is not trainer/3");
  const auto said_back = answer_hello(ask, kOwner, kSecret, ask.nonce.data);
  EXPECT_FALSE(prove_hello(ask, *said_back, kSecret).ok()) << "our own nonce";
}

TEST(Hello, SaysWhyItIsNotAnswered) {
  const auto why = [](const auto& change) {
    HelloAsk ask = some_ask();
    change(ask);
    const auto answer = answer_hello(ask, kOwner, kSecret, kNonce);
    return answer.ok() ? std::string() : answer.error().message;
  };
  EXPECT_EQ(why([](HelloAsk& ask) { ask.version = 4; }),
            "it speaks version 4 of the link, and trainer/3 version 3: both have to load one library");
  EXPECT_EQ(why([](HelloAsk& ask) { ask.owner.generation = 6; }),
            "it means generation 6 of trainer/3, and this is generation 7 of trainer/3");
  EXPECT_EQ(why([](HelloAsk& ask) { ask.nonce.data = "short"; }), "a hello that is none");
  EXPECT_EQ(why([](HelloAsk& ask) { ask.reader.mesh = std::string(200, 'x'); }), "a hello that is none");
}

LinkFrame rows_of(std::uint64_t offset, std::uint32_t rows, std::uint64_t row, std::uint64_t pitch) {
  LinkFrame frame{.kind = FrameKind::kRows, .slot = 1, .version = {3, 9}};
  frame.offset = offset;
  frame.rows = rows;
  frame.row = row;
  frame.pitch = pitch;
  return frame;
}

TEST(Frames, SayWhenThereMayBeAPlace) {
  LinkFrame frame{.kind = FrameKind::kUnfit, .flags = kAgain};
  frame.offset = 500;
  EXPECT_EQ(time_to_come_again(*decode_frame(encode_frame(frame))), Duration::milliseconds(500));
  frame.offset = UINT64_MAX;
  EXPECT_EQ(time_to_come_again(frame), Duration::seconds(60)) << "no longer";
  frame.flags = kOther;
  EXPECT_EQ(time_to_come_again(frame), std::nullopt);
  frame = {.kind = FrameKind::kOver, .flags = kAgain};
  EXPECT_EQ(time_to_come_again(frame), std::nullopt);
}

TEST(Frames, AreReadAsTheyAreWritten) {
  LinkFrame frame = rows_of(kSlotHeaderBytes, 7, 512, 1024);
  frame.flags = kNewerThan | kWhole;
  frame.length = 7 * 512;
  const std::string bytes = encode_frame(frame);
  ASSERT_EQ(bytes.size(), kFrameBytes);
  EXPECT_EQ(*decode_frame(bytes), frame);
  const auto refused = [&](std::size_t at, char byte) {
    std::string other = bytes;
    other[at] = byte;
    return !decode_frame(other).ok();
  };
  EXPECT_TRUE(refused(0, 'x')) << "magic";
  EXPECT_TRUE(refused(4, 0)) << "kind";
  EXPECT_TRUE(refused(4, static_cast<char>(static_cast<int>(kLastFrameKind) + 1)));
  EXPECT_TRUE(refused(7, 1)) << "flags";
  EXPECT_TRUE(refused(10, 1)) << "what is reserved";
  EXPECT_TRUE(refused(60, 1)) << "length";
  EXPECT_FALSE(decode_frame(bytes.substr(1)).ok());
}

TEST(Frames, AskForRowsWithinASlotOrForNone) {
  constexpr std::uint64_t kSlot = 1U << 20U;
  EXPECT_TRUE(check_rows(rows_of(kSlotHeaderBytes, 4, 100, 200), kSlot).ok());
  EXPECT_TRUE(check_rows(rows_of(kSlot - 100, 1, 100, 0), kSlot).ok());
  EXPECT_EQ(check_rows(rows_of(kSlot - 99, 1, 100, 0), kSlot).error().message,
            "1 rows of 100 bytes, 0 apart, from byte 1048477 on are not within a slot of 1048576 bytes");
  EXPECT_FALSE(check_rows(rows_of(0, 1, 8, 0), kSlot).ok()) << "the word is asked for otherwise";
  EXPECT_FALSE(check_rows(rows_of(kSlotHeaderBytes, 2, 100, 99), kSlot).ok());
  EXPECT_FALSE(check_rows(rows_of(kSlotHeaderBytes, 0, 100, 100), kSlot).ok());
  EXPECT_FALSE(check_rows(rows_of(kSlotHeaderBytes, 3, 100, 1ULL << 63U), kSlot).ok());
  EXPECT_FALSE(check_rows(rows_of(~0ULL - 10, 1, 100, 0), kSlot).ok());
}

}  // namespace
}  // namespace monarch::tensor
