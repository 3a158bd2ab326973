#include "supervisor/spec/yaml/scalar.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

YamlNode plain(std::string text) { return {.kind = YamlNode::Kind::kScalar, .text = std::move(text)}; }
YamlNode quoted(std::string text) { return {.kind = YamlNode::Kind::kScalar, .quoted = true, .text = std::move(text)}; }

TEST(Integer, TakesDecimalDigitsAlone) {
  EXPECT_EQ(parse_integer(plain("0")).value, 0);
  EXPECT_EQ(parse_integer(plain("17")).value, 17);
  EXPECT_EQ(parse_integer(plain("-3")).value, -3);
  EXPECT_EQ(parse_integer(plain("9223372036854775807")).value, 9223372036854775807);
}

TEST(Integer, RefusesEveryOtherNotationAndNamesTheRightOne) {
  const std::pair<const char*, const char*> cases[] = {{"010", "10"},
                                                       {"0o7", "7"},
                                                       {"0O17", "15"},
                                                       {"0x1F", "31"},
                                                       {"0b101", "5"},
                                                       {"1e3", "1000"},
                                                       {"1_000", "1000"},
                                                       {"1,000", "1000"},
                                                       {"+4", "4"},
                                                       {"4.0", "4"},
                                                       {"-0x10", "-16"},
                                                       {"00", "0"},
                                                       {"4.5", ""},
                                                       {"four", ""},
                                                       {"", ""},
                                                       {"1e400", ""},
                                                       {"0x", ""},
                                                       {"0xfffffffffffffffffff", ""},
                                                       {"9223372036854775808", ""},
                                                       {"-", ""},
                                                       {"-0", "0"},
                                                       {"nan", ""},
                                                       {".inf", ""}};
  for (const auto& [written, right] : cases) {
    const auto parsed = parse_integer(plain(written));
    EXPECT_FALSE(parsed.value) << written;
    EXPECT_EQ(parsed.wrong.right, right) << written;
    EXPECT_FALSE(parsed.wrong.label.empty()) << written;
  }
}

TEST(Integer, RefusesQuotesAndSaysWhatToWrite) {
  EXPECT_FALSE(parse_integer(quoted("4")).value);
  EXPECT_EQ(parse_integer(quoted("4")).wrong.right, "4");
  EXPECT_EQ(parse_integer(quoted("x")).wrong.right, "");
}

TEST(Number, TakesDecimalsAlone) {
  EXPECT_EQ(parse_number(plain("0.25")).value, 0.25);
  EXPECT_EQ(parse_number(plain("1")).value, 1.0);
  for (const char* written : {"1e-1", ".5", "5.", "0x1p3", "nan", "inf", "-0.5", "00.5", "", "0,5", "1.2.3"}) {
    EXPECT_FALSE(parse_number(plain(written)).value) << written;
  }
  EXPECT_EQ(parse_number(plain(".5")).wrong.right, "0.5");
}

TEST(Bool, TakesTrueAndFalseAlone) {
  EXPECT_EQ(parse_bool(plain("true")).value, true);
  EXPECT_EQ(parse_bool(plain("false")).value, false);
  const std::pair<const char*, const char*> cases[] = {
      {"yes", "true"},    {"no", "false"}, {"on", "true"}, {"off", "false"}, {"Yes", "true"}, {"TRUE", "true"},
      {"False", "false"}, {"1", "true"},   {"0", "false"}, {"n", "false"},   {"maybe", ""}};
  for (const auto& [written, right] : cases) {
    EXPECT_FALSE(parse_bool(plain(written)).value) << written;
    EXPECT_EQ(parse_bool(plain(written)).wrong.right, right) << written;
  }
  EXPECT_FALSE(parse_bool(quoted("true")).value);
}

TEST(DurationText, TakesNumbersWithUnits) {
  EXPECT_EQ(parse_duration(plain("500ms")).value, Duration::milliseconds(500));
  EXPECT_EQ(parse_duration(plain("1.5s")).value, Duration::milliseconds(1500));
  EXPECT_EQ(parse_duration(plain("2m")).value, Duration::seconds(120));
  EXPECT_EQ(parse_duration(plain("1h30m")).value, Duration::seconds(5400));
  EXPECT_EQ(parse_duration(plain("2d")).value, Duration::seconds(172'800));
  EXPECT_EQ(parse_duration(plain("0s")).value, Duration::zero());
  EXPECT_EQ(parse_duration(quoted("10s")).value, Duration::seconds(10));
}

TEST(DurationText, RefusesEverythingElseAndNamesTheRightForm) {
  const std::pair<const char*, const char*> cases[] = {{"10", "10s"},    {"4:00:00", "4h"},  {"1:30", "1h30m"},
                                                       {"10 s", "10s"},  {"10sec", "10s"},   {"5 minutes", "5m"},
                                                       {"2hours", "2h"}, {"10S", "10s"},     {"1.5", "1.5s"},
                                                       {"1e3", ""},      {"1m1h", ""},       {"-5s", ""},
                                                       {"s", ""},        {"", ""},           {"1..5s", ""},
                                                       {"none", ""},     {"1s1s", ""},       {"99999999999999d", ""},
                                                       {".5s", ""},      {"1us", ""},        {":", ""},
                                                       {"1:2:3:4", ""},  {"00:00:30", "30s"}};
  for (const auto& [written, right] : cases) {
    const auto parsed = parse_duration(plain(written));
    EXPECT_FALSE(parsed.value) << written;
    EXPECT_EQ(parsed.wrong.right, right) << written;
  }
}

TEST(DurationText, IsReadBackAsItWasWritten) {
  for (const std::int64_t ms : {0LL, 1LL, 999LL, 1000LL, 61'500LL, 5'400'000LL, 86'400'000LL, 90'061'001LL}) {
    const Duration d = Duration::milliseconds(ms);
    EXPECT_EQ(parse_duration(plain(write_duration(d))).value, d) << write_duration(d);
  }
}

TEST(Size, TakesBinaryUnitsAlone) {
  EXPECT_EQ(parse_size(plain("64MiB")).value, 64U << 20U);
  EXPECT_EQ(parse_size(plain("1.5KiB")).value, 1536U);
  EXPECT_EQ(parse_size(plain("1TiB")).value, 1ULL << 40U);
  EXPECT_EQ(parse_size(plain("12B")).value, 12U);
  const std::pair<const char*, const char*> cases[] = {
      {"1GB", "1GiB"}, {"1G", "1GiB"}, {"10", "10MiB"},    {"64 MiB", "64MiB"}, {"64mb", "64MiB"},     {"x", ""},
      {"", ""},        {"-1GiB", ""},  {"12bytes", "12B"}, {"4096", "4096B"},   {"99999999999TiB", ""}};
  for (const auto& [written, right] : cases) {
    EXPECT_FALSE(parse_size(plain(written)).value) << written;
    EXPECT_EQ(parse_size(plain(written)).wrong.right, right) << written;
  }
}

}  // namespace
}  // namespace monarch
