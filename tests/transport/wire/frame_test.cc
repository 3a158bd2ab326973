#include "transport/wire/frame.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

FrameHeader full_header() {
  FrameHeader header{
      .type = 0x0102,
      .term = Term(0x1112'1314'1516'1718),
      .process = {{MeshId(0x2122'2324), Rank(0x3132'3334)}, {Term(0x4142'4344'4546'4748), 0x5152'5354'5556'5758}},
      .seq = 0x6162'6364'6566'6768,
      .call = 0xf1f2'f3f4'f5f6'f7f8};
  for (std::size_t i = 0; i < header.job.bytes.size(); ++i) header.job.bytes[i] = static_cast<std::uint8_t>(0xa0 + i);
  return header;
}

TEST(Frame, HeaderIsTheSameAfterTheWire) {
  const auto back = decode_header(encode_header(full_header()));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, full_header());
}

// The layout is what other builds read: it may only change with the version.
TEST(Frame, HeaderHasAFixedLittleEndianLayout) {
  const std::string bytes = encode_header(full_header());
  ASSERT_EQ(bytes.size(), kFrameHeaderBytes);
  EXPECT_EQ(bytes.substr(0, 4), "mnrf");
  EXPECT_EQ(bytes.substr(4, 4), std::string("\x01\x00\x02\x01", 4));
  EXPECT_EQ(bytes.substr(8, 2), "\xa0\xa1");
  EXPECT_EQ(bytes.substr(24, 8), "\x18\x17\x16\x15\x14\x13\x12\x11");
  EXPECT_EQ(bytes.substr(32, 8), "\x24\x23\x22\x21\x34\x33\x32\x31");
  EXPECT_EQ(bytes.substr(64, 8), "\xf8\xf7\xf6\xf5\xf4\xf3\xf2\xf1");
}

TEST(Frame, RefusesEveryOtherLength) {
  const std::string bytes = encode_header(full_header()) + "x";
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    EXPECT_EQ(decode_header(bytes.substr(0, size)).ok(), size == kFrameHeaderBytes) << size;
  }
}

TEST(Frame, RefusesAnotherMagicAsInvalidAndAnotherVersionAsUnsupported) {
  for (std::size_t i = 0; i < 6; ++i) {
    std::string bytes = encode_header(full_header());
    bytes[i] = static_cast<char>(bytes[i] ^ 0x40);
    EXPECT_EQ(decode_header(bytes).error().code, i < 4 ? ErrorCode::kInvalid : ErrorCode::kUnsupported) << i;
  }
}

TEST(Frame, WholeFramesAreBounded) {
  const Frame frame{.header = full_header(), .payload = std::string("a\0b", 3)};
  const auto back = decode_frame(encode_frame(frame), 3);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, frame);
  EXPECT_EQ(decode_frame(encode_frame(frame), 2).error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(decode_frame("", 2).ok());
}

}  // namespace
}  // namespace monarch
