#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/transport/wire/every_message.h"
#include "transport/base/sanitizers.h"
#include "transport/wire/codec.h"

namespace monarch {
namespace {

constexpr std::size_t kLimit = 16U << 20U;

TEST(Messages, AreTheSameAfterTheWire) {
  for (const MessageKind& message : every_message()) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      SCOPED_TRACE(text(message.name, ", seed ", seed));
      const std::string bytes = message.arbitrary(seed);
      const auto back = message.again(bytes, kLimit);
      ASSERT_TRUE(back.ok()) << back.error().message;
      EXPECT_EQ(*back, bytes);
    }
  }
}

// Of each list one, a hundred, and as many as the payload's limit leaves room for.
TEST(Messages, WithListsOfAnyLengthAreTheSameAfterTheWire) {
  std::size_t lists = 0;
  for (const MessageKind& message : every_message()) {
    for (std::size_t which = 0; message.with_many(which, 1); ++which, ++lists) {
      const std::size_t one = message.with_many(which, 1)->size();
      const std::size_t each = message.with_many(which, 101)->size() / 101 + 1;
      const std::size_t limit = limits::kControlPayloadBytes / (kSanitized ? 16 : 1);
      for (const std::size_t entries : {std::size_t{1}, std::size_t{100}, (limit - one) / (each + 2)}) {
        SCOPED_TRACE(text(message.name, ", list ", which, " of ", entries));
        const std::string bytes = message.with_many(which, entries).value();
        const auto back = message.again(bytes, limits::kControlPayloadBytes);
        ASSERT_TRUE(back.ok()) << back.error().message;
        EXPECT_TRUE(*back == bytes);
      }
    }
  }
  EXPECT_GT(lists, 50U);
}

TEST(Messages, HaveANumberEachThatNoOtherHas) {
  std::map<std::uint16_t, std::string> seen;
  for (const MessageKind& message : every_message()) {
    if (message.number == 0) continue;
    const auto [other, is_new] = seen.emplace(message.number, message.name);
    EXPECT_TRUE(is_new) << message.name << " and " << other->second << " are " << message.number;
  }
  EXPECT_GT(seen.size(), 60U);
}

TEST(Messages, OfOneKindWithOtherValuesHaveOtherBytes) {
  for (const MessageKind& message : every_message())
    EXPECT_NE(message.arbitrary(1), message.arbitrary(2)) << message.name;
}

TEST(Messages, CutAnywhereAreRefused) {
  for (const MessageKind& message : every_message()) {
    const std::string bytes = message.arbitrary(7);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const auto cut = message.again(std::string_view(bytes).substr(0, size), kLimit);
      ASSERT_FALSE(cut.ok()) << message.name << " cut at " << size;
      EXPECT_EQ(cut.error().code, ErrorCode::kInvalid);
    }
  }
}

TEST(Messages, WithAnyByteReplacedAreRefusedOrAnotherValidMessage) {
  for (const MessageKind& message : every_message()) {
    const std::string bytes = message.arbitrary(11);
    // Every byte of a short message, so many of a long one: its cost is the product.
    const std::size_t stride = bytes.size() / (kSanitized ? 100 : 400) + 1;
    for (std::size_t at = 0; at < bytes.size(); at += stride) {
      for (const unsigned byte : {0x00U, 0x01U, 0x7fU, 0x80U, 0x9fU, 0xc0U, 0xc1U, 0xc6U, 0xdbU, 0xddU, 0xdfU, 0xffU}) {
        std::string changed = bytes;
        changed[at] = static_cast<char>(byte);
        const auto back = message.again(changed, kLimit);
        if (!back.ok()) continue;
        const auto again = message.again(*back, kLimit);
        ASSERT_TRUE(again.ok()) << message.name << ", byte " << at;
        ASSERT_EQ(*again, *back);
      }
    }
  }
}

TEST(Messages, OfANewerPeerMayHaveMoreFields) {
  codec::Writer writer;
  writer.array(3);
  writer.unsigned_integer(41);
  writer.string("a field of the future");
  writer.map(1);
  writer.nil();
  writer.real(1.5);
  const auto ping = decode_payload<KeeperPing>(writer.take());
  ASSERT_TRUE(ping.ok()) << ping.error().message;
  EXPECT_EQ(ping->number, 41U);
}

TEST(Messages, ErrorsSayWhatIsWrongAndWhere) {
  const auto wrong = decode_payload<KeeperPing>("\x91\xa1x");
  EXPECT_EQ(wrong.error().message, "decoding a payload: an integer expected, at byte 1 of 3");
  const auto missing = decode_payload<KeeperPing>("\x90");
  EXPECT_NE(missing.error().message.find("misses fields"), std::string::npos);
}

TEST(Messages, OverTheLimitAreRefusedUnread) {
  const std::string bytes = encode_payload(KeeperStash{.bytes = std::string(100, 'x')});
  EXPECT_TRUE(decode_payload<KeeperStash>(bytes, bytes.size()).ok());
  EXPECT_EQ(decode_payload<KeeperStash>(bytes, bytes.size() - 1).error().code, ErrorCode::kInvalid);
}

TEST(Messages, EnumeratorsOutOfRangeAreRefused) {
  RankEnd end;
  end.kind = EndKind::kSetupFailed;
  std::string bytes = encode_payload(end);
  ASSERT_EQ(bytes[1], 4);
  bytes[1] = 5;
  EXPECT_FALSE(decode_payload<RankEnd>(bytes).ok());
}

TEST(Messages, ForeverStaysForever) {
  const auto back = decode_payload<Duration>(encode_payload(Duration::forever()));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, Duration::forever());
  const auto never = decode_payload<Instant>(encode_payload(Instant::never()));
  ASSERT_TRUE(never.ok());
  EXPECT_EQ(*never, Instant::never());
}

TEST(Messages, CarryErrorsAndJobs) {
  const auto errors =
      decode_payload<std::vector<Error>>(encode_payload(std::vector{Error{ErrorCode::kTimeout, "late"}}));
  ASSERT_TRUE(errors.ok());
  EXPECT_EQ(errors->at(0).code, ErrorCode::kTimeout);
  EXPECT_EQ(errors->at(0).message, "late");
  JobUuid job;
  job.bytes[0] = 0xff;
  job.bytes[15] = 1;
  const auto back = decode_payload<JobUuid>(encode_payload(job));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, job);
  EXPECT_FALSE(decode_payload<JobUuid>(encode_payload(codec::Bytes{"short"})).ok());
}

}  // namespace
}  // namespace monarch
