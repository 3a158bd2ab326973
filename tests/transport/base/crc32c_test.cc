#include "transport/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace monarch {
namespace {

TEST(Crc32c, GivesTheKnownVectors) {
  EXPECT_EQ(crc32c(0, "123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c_by_table(0, "123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(0, std::string(32, '\0')), 0x8A9136AAU);    // RFC 3720 B.4
  EXPECT_EQ(crc32c(0, std::string(32, '\xff')), 0x62A8AB43U);  // RFC 3720 B.4
  EXPECT_EQ(crc32c(0, ""), 0U);
}

TEST(Crc32c, InstructionAndTableAgreeForEveryLengthAndSplit) {
  std::string bytes;
  for (int i = 0; i < 70; ++i) bytes.push_back(static_cast<char>(i * 37 + 11));
  for (std::size_t length = 0; length <= bytes.size(); ++length) {
    const std::string_view whole(bytes.data(), length);
    const std::uint32_t expected = crc32c_by_table(0, whole);
    EXPECT_EQ(crc32c(0, whole), expected);
    for (std::size_t cut = 0; cut <= length; ++cut) {
      EXPECT_EQ(crc32c(crc32c(0, whole.substr(0, cut)), whole.substr(cut)), expected);
    }
  }
}

}  // namespace
}  // namespace monarch
