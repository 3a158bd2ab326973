#include "transport/base/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace monarch {
namespace {

TEST(Json, WritesObjectsInTheOrderOfWriting) {
  const Json json = Json::object({{"v", 1}, {"type", "host.lost"}, {"a", Json::array({true, nullptr, 2.5, -3})}});
  EXPECT_EQ(to_json(json), R"({"v":1,"type":"host.lost","a":[true,null,2.5,-3]})");
}

TEST(Json, SetReplacesInPlaceAndAppends) {
  Json json;
  json.set("b", 1).set("a", 2).set("b", Json::object({{"x", std::string("y")}}));
  EXPECT_EQ(to_json(json), R"({"b":{"x":"y"},"a":2})");
}

TEST(Json, KeepsTheExtremesOfNumbers) {
  const Json json = Json::array({std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::uint64_t>::max(),
                                 1.0, 0.1, std::numeric_limits<double>::infinity()});
  const std::string line = to_json(json);
  EXPECT_EQ(line, "[-9223372036854775808,18446744073709551615,1.0,0.1,null]");
  const auto back = parse_json(line);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->items()[0].as_int64(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(back->items()[1].as_uint64(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(back->items()[1].as_int64(), std::nullopt);
  EXPECT_EQ(back->items()[0].as_uint64(), std::nullopt);
  EXPECT_EQ(back->items()[2].as_double(), 1.0);
  EXPECT_EQ(back->items()[2].as_int64(), std::nullopt);
}

TEST(Json, EveryByteStringBecomesOneSafeLineOfValidJson) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; second += first < 0x80 ? 255 : 1) {
      const std::string raw{static_cast<char>(first), static_cast<char>(second), 'x'};
      const std::string line = to_json(Json(raw));
      for (std::size_t i = 0; i < line.size(); ++i) {
        const auto byte = static_cast<unsigned char>(line[i]);
        ASSERT_TRUE(byte >= 0x20 && byte != 0x7F) << first << ' ' << second;
        if (byte == 0xC2) {
          ASSERT_GE(static_cast<unsigned char>(line[i + 1]), 0xA0) << "a C1 control got through";
        }
      }
      ASSERT_TRUE(parse_json(line).ok()) << line;
    }
  }
}

TEST(Json, EscapesWhatSteersATerminalAndReplacesWhatIsNotUtf8) {
  EXPECT_EQ(to_json(Json("\x1b[31m\x7f")), R"("\u001b[31m\u007f")");
  EXPECT_EQ(to_json(Json("\xC2\x9B"
                         "31m")),
            R"("\u009b31m")");
  EXPECT_EQ(to_json(Json("\xE2\x80\xAE"
                         "evil")),
            R"("\u202eevil")");
  EXPECT_EQ(to_json(Json("\xff\xfe")), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(to_json(Json("\xED\xA0\x80")), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(to_json(Json("\xF0\x9F\x98\x80 \xC3\xA9 \"\\\n")), "\"\xF0\x9F\x98\x80 \xC3\xA9 \\\"\\\\\\n\"");
}

TEST(Json, ReadsBackWhatItWrote) {
  const Json json = Json::object({{"text", "a\tb\x01"}, {"n", 7U}, {"list", Json::array({Json::object()})}});
  const auto back = parse_json(to_json(json));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->get_string("text"), "a\tb\x01");
  EXPECT_EQ(back->get_uint64("n"), 7U);
  EXPECT_EQ(back->get_int64("n"), 7);
  EXPECT_EQ(back->get_double("n"), 7.0);
  EXPECT_EQ(back->get_bool("n"), std::nullopt);
  EXPECT_EQ(back->get_string("missing"), std::nullopt);
  EXPECT_EQ(to_json(*back), to_json(json));
}

TEST(Json, RefusesWhatIsNotOneValue) {
  for (const char* wrong : {"", "{", "[1,]", "{\"a\":1,}", "1 2", "nul", "\"\x01\"", "\"\xff\"", "{\"a\":1,\"a\":2}",
                            "{1:2}", "01", "NaN", "// c\n1", "[1]]", "1e999"}) {
    EXPECT_FALSE(parse_json(wrong).ok()) << wrong;
  }
}

TEST(Json, RefusesMoreThanTheLimits) {
  EXPECT_TRUE(parse_json(std::string(32, '[') + std::string(32, ']')).ok());
  EXPECT_FALSE(parse_json(std::string(33, '[') + std::string(33, ']')).ok());
  EXPECT_FALSE(parse_json(std::string(900'000, '[')).ok());
  EXPECT_FALSE(parse_json("[1,2]", {.bytes = 4}).ok());
}

}  // namespace
}  // namespace monarch
