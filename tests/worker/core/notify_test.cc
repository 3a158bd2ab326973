#include "worker/core/notify.h"

#include <gtest/gtest.h>

#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using Metrics = std::vector<std::pair<std::string, std::string>>;

TEST(Notice, ReadsEveryKeyOfOneDatagram) {
  const Notice notice = parse_notice(
      "READY=1\nSTATUS=loading shards\nWATCHDOG=1\nSTOPPING=1\nX_MONARCH_STEP=17\nX_MONARCH_PHASE=checkpoint\n"
      "X_MONARCH_METRIC=loss:2.3\nX_MONARCH_METRIC=train/tokens_per_s:1e5\n");
  EXPECT_TRUE(notice.ready);
  EXPECT_TRUE(notice.watchdog);
  EXPECT_TRUE(notice.stopping);
  EXPECT_EQ(notice.status, "loading shards");
  EXPECT_EQ(notice.step, 17U);
  EXPECT_EQ(notice.phase, "checkpoint");
  EXPECT_EQ(notice.metrics, (Metrics{{"loss", "2.3"}, {"train/tokens_per_s", "1e5"}}));
  EXPECT_EQ(notice.bad, 0U);
}

TEST(Notice, PassesOverWhatIsSomebodyElses) {
  const Notice notice =
      parse_notice("MAINPID=12\nFDSTORE=1\nFDNAME=a\nBARRIER=1\nERRNO=2\nX_OTHER=3\nno equals\n\n=\nready=1\nREADY\n");
  EXPECT_FALSE(notice.says_anything());
  EXPECT_EQ(notice.bad, 0U);
}

TEST(Notice, CountsBadValuesOfOursAndTakesTheRest) {
  const Notice notice = parse_notice(
      "X_MONARCH_STEP=-1\nX_MONARCH_STEP=1.5\nX_MONARCH_STEP=\nX_MONARCH_STEP=99999999999999999999\nREADY=yes\n"
      "X_MONARCH_PHASE=a b\nX_MONARCH_METRIC=loss\nX_MONARCH_METRIC=:1\nX_MONARCH_METRIC=loss:x\n"
      "X_MONARCH_METRIC=loss:\nX_MONARCH_METRIC=loss:1 \nSTATUS=good");
  EXPECT_EQ(notice.bad, 11U);
  EXPECT_EQ(notice.first_bad, "X_MONARCH_STEP=-1");
  EXPECT_EQ(notice.status, "good");
  EXPECT_FALSE(notice.step);
  EXPECT_FALSE(notice.phase);
  EXPECT_FALSE(notice.ready);
  EXPECT_TRUE(notice.metrics.empty());
}

TEST(Notice, TakesALossThatIsNoNumberAnyMore) {
  const Notice notice =
      parse_notice("X_MONARCH_METRIC=loss:nan\nX_MONARCH_METRIC=norm:-inf\nX_MONARCH_METRIC=lr:+1e-4");
  EXPECT_EQ(notice.metrics, (Metrics{{"loss", "nan"}, {"norm", "-inf"}, {"lr", "+1e-4"}}));
}

TEST(Notice, KeepsItsLimits) {
  EXPECT_EQ(parse_notice("STATUS=" + std::string(1'000, 's')).status->size(), kStatusBytes);
  EXPECT_EQ(parse_notice("X_MONARCH_PHASE=" + std::string(kPhaseBytes + 1, 'p')).bad, 1U);
  EXPECT_EQ(parse_notice("X_MONARCH_METRIC=" + std::string(kMetricNameBytes + 1, 'm') + ":1").bad, 1U);
  EXPECT_EQ(parse_notice("X_MONARCH_METRIC=m:" + std::string(kMetricValueBytes + 1, '1')).bad, 1U);
  std::string many;
  for (int i = 0; i < 20; ++i) many += text("X_MONARCH_METRIC=m", i, ":1\nX_MONARCH_METRIC=m0:", i, "\n");
  const Notice notice = parse_notice(many);
  EXPECT_EQ(notice.metrics.size(), kMetrics);
  EXPECT_EQ(notice.metrics.front().second, "19");
  EXPECT_EQ(notice.bad, 4U);
  EXPECT_FALSE(parse_notice("READY=1\n" + std::string(kNotifyBytes, 'x')).ready);
}

TEST(Notice, TakesAnyBytes) {
  EXPECT_EQ(parse_notice(std::string_view("STATUS=a\0b\xff\n", 11)).status, std::string("a\0b\xff", 4));
  EXPECT_FALSE(parse_notice("").says_anything());
  EXPECT_FALSE(parse_notice("\n\n\n").says_anything());
}

TEST(Notice, LeavesAPhaseByAnEmptyOne) {
  const Notice notice = parse_notice("X_MONARCH_PHASE=");
  EXPECT_EQ(notice.phase, "");
  EXPECT_TRUE(notice.says_anything());
}

TEST(Question, ForAPlaceIsAnsweredWithItsEnvironment) {
  EXPECT_EQ(gate_answer({{"A", "gang"}, {"B", "x\"\n"}}, {{"A", "own"}}),
            R"({"v":1,"ok":true,"env":{"A":"own","B":"x\"\u000a"}})");
  EXPECT_EQ(gate_answer({}, {}), R"({"v":1,"ok":true,"env":{}})");
}

TEST(Question, IsTheFirstThatIsAsked) {
  EXPECT_EQ(parse_question("ASK=who"), RankQuestion::kWho);
  EXPECT_EQ(parse_question("X=1\nASK=events\nASK=who"), RankQuestion::kEvents);
  EXPECT_EQ(parse_question("ASK=committed"), RankQuestion::kCommitted);
  EXPECT_EQ(parse_question("WHAT=a\nCOMMIT=12\nASK=who"), RankQuestion::kCommit);
  EXPECT_EQ(parse_question("ASK=gate"), RankQuestion::kGate);
  EXPECT_EQ(parse_question("ASK=the time"), RankQuestion::kUnknown);
  EXPECT_EQ(parse_question("READY=1"), RankQuestion::kNone);
  EXPECT_EQ(parse_question(std::string(kNotifyBytes + 1, 'x')), RankQuestion::kUnknown);
}

TEST(Answer, IsOneObjectOfJsonWhateverTheNames) {
  const auto who = parse_json(
      who_answer({.job = "demo-1a2b", .mesh = "tra\"in\\er", .rank = 3, .generation = 2, .host = "v\n1\x7f"}));
  ASSERT_TRUE(who.ok()) << who.error().message;
  EXPECT_EQ(who->get_string("job"), "demo-1a2b");
  EXPECT_EQ(who->get_string("mesh"), "tra\"in\\er");
  EXPECT_EQ(who->get_uint64("rank"), 3U);
  EXPECT_EQ(who->get_uint64("generation"), 2U);
  EXPECT_EQ(who->get_string("host"), "v\n1\x7f");
  for (const std::string& line : {events_answer(), unknown_answer(), stopping_event(15, Duration::seconds(30)),
                                  lease_low_event(Duration::milliseconds(1'999))}) {
    const auto json = parse_json(line);
    ASSERT_TRUE(json.ok()) << line;
    EXPECT_EQ(json->get_uint64("v"), 1U);
  }
}

TEST(Event, IsKnownByItsName) {
  const std::string line = stopping_event(15, Duration::seconds(30));
  EXPECT_EQ(line, R"({"v":1,"event":"stopping","signal":15,"grace_milliseconds":30000})");
  EXPECT_TRUE(is_event(line, "stopping"));
  EXPECT_FALSE(is_event(line, "stop"));
  EXPECT_TRUE(is_event(to_json(Json::object({{"v", 1}, {"event", "stopping"}})), "stopping"));
  EXPECT_FALSE(is_event(lease_low_event(Duration::seconds(2)), "stopping"));
}

}  // namespace
}  // namespace monarch
