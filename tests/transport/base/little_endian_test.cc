#include "transport/base/little_endian.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace monarch {
namespace {

TEST(LittleEndian, PutsTheLowestByteFirst) {
  std::string out = "x";
  little_endian::put(out, std::uint8_t{0xfe});
  little_endian::put(out, std::uint16_t{0x0102});
  little_endian::put(out, std::uint32_t{0x03040506});
  little_endian::put(out, std::int64_t{-2});
  EXPECT_EQ(out, "x\xfe\x02\x01\x06\x05\x04\x03\xfe\xff\xff\xff\xff\xff\xff\xff");
  EXPECT_EQ(little_endian::bytes(std::uint32_t{0x03040506}), "\x06\x05\x04\x03");
}

TEST(LittleEndian, GetsWhatWasPut) {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  const std::string bytes = "x" + little_endian::bytes(kLeast) + little_endian::bytes(kMost);
  EXPECT_EQ(little_endian::get<std::int64_t>(bytes, 1), kLeast);
  EXPECT_EQ(little_endian::get<std::uint64_t>(bytes, 9), kMost);
  EXPECT_EQ(little_endian::get<std::uint16_t>("\xff\x01\x80", 1), 0x8001U);
}

}  // namespace
}  // namespace monarch
