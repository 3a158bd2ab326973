#include "worker/core/rank_voice.h"

#include <gtest/gtest.h>

#include "transport/base/text.h"
#include "worker/core/progress_budget.h"

namespace monarch {
namespace {

constexpr Duration kPeriod = Duration::milliseconds(250);

Instant at(std::int64_t milliseconds) { return Instant::since_boot(Duration::milliseconds(milliseconds)); }

Notice step(std::uint64_t number) {
  Notice notice;
  notice.step = number;
  return notice;
}

TEST(RankVoice, TellsTheFirstWordAtOnceAndTheLastOfAPeriod) {
  RankVoice voice(kPeriod);
  EXPECT_EQ(voice.due(), Instant::never());
  voice.hear(step(1), at(1'000));
  EXPECT_EQ(voice.due(), at(1'000));
  voice.told(at(1'000));
  EXPECT_EQ(voice.due(), Instant::never());
  for (std::uint64_t i = 2; i <= 100'000; ++i) voice.hear(step(i), at(1'001));
  EXPECT_EQ(voice.due(), at(1'250));
  EXPECT_EQ(voice.progress().step, 100'000U);
  EXPECT_EQ(voice.progress().at, at(1'001));
  voice.told(at(1'250));
  voice.hear(step(7), at(9'000));
  EXPECT_EQ(voice.due(), at(9'000));
}

// When a failure was made good is known to the word, not to the beat.
TEST(RankVoice, TellsTheFirstStepBeyondWhereItsGangWasAtOnce) {
  RankVoice voice(kPeriod);
  voice.look_beyond(10);
  voice.hear(step(4), at(1'000));
  voice.told(at(1'000));
  voice.hear(step(10), at(1'010));
  EXPECT_EQ(voice.due(), at(1'250));
  EXPECT_EQ(voice.progress().past, std::nullopt);
  voice.hear(step(11), at(1'020));
  EXPECT_EQ(voice.due(), at(1'020));
  voice.told(at(1'020));
  voice.hear(step(12), at(1'030));
  EXPECT_EQ(voice.due(), at(1'270));
  EXPECT_EQ(voice.progress().first, (StepMark{4, at(1'000)}));
  EXPECT_EQ(voice.progress().past, (StepMark{11, at(1'020)}));
}

TEST(RankVoice, TellsReadinessAtOnceAndOnce) {
  RankVoice voice(kPeriod);
  voice.hear(step(1), at(1'000));
  voice.told(at(1'000));
  voice.hear(step(2), at(1'010));
  voice.hear(parse_notice("READY=1"), at(1'020));
  EXPECT_EQ(voice.due(), at(1'020));
  EXPECT_TRUE(voice.ready());
  voice.told(at(1'020));
  voice.hear(parse_notice("READY=1"), at(1'030));
  EXPECT_EQ(voice.due(), at(1'270));
  voice.hear(parse_notice("READY=0"), at(1'040));
  EXPECT_TRUE(voice.ready());
}

TEST(RankVoice, KeepsTheLastValueOfEachAndSixteenMetrics) {
  RankVoice voice(kPeriod);
  voice.hear(parse_notice("STATUS=a\nX_MONARCH_PHASE=init\nX_MONARCH_METRIC=loss:3"), at(1));
  voice.hear(parse_notice("X_MONARCH_METRIC=loss:2"), at(2));
  EXPECT_EQ(voice.progress().status, "a");
  EXPECT_EQ(voice.progress().phase, "init");
  EXPECT_EQ(voice.progress().metrics, (decltype(RankProgress::metrics){{"loss", "2"}}));
  for (int i = 0; i < 20; ++i) voice.hear(parse_notice(text("X_MONARCH_METRIC=m", i, ":1")), at(3));
  EXPECT_EQ(voice.progress().metrics.size(), kMetrics);
  EXPECT_EQ(voice.bad(), 5U);
  voice.hear(parse_notice("X_MONARCH_PHASE="), at(4));
  EXPECT_EQ(voice.progress().phase, "");
}

TEST(RankVoice, TellsOfWhatWasDroppedOnceAPeriod) {
  RankVoice voice(kPeriod);
  voice.dropped(at(1'000));
  EXPECT_EQ(voice.due(), at(1'000));
  voice.told(at(1'000));
  for (int i = 0; i < 1'000; ++i) voice.dropped(at(1'001));
  EXPECT_EQ(voice.due(), at(1'250));
  EXPECT_FALSE(voice.ready());
  EXPECT_EQ(voice.progress(), RankProgress{});
}

TEST(RankVoice, SaysNothingForWhatIsNotOurs) {
  RankVoice voice(kPeriod);
  voice.hear(parse_notice("MAINPID=7\nX_MONARCH_STEP=x"), at(1));
  EXPECT_EQ(voice.due(), Instant::never());
  EXPECT_EQ(voice.bad(), 1U);
}

std::vector<RankReport> talkers(std::size_t count) {
  std::vector<RankReport> reports(count);
  for (std::size_t i = 0; i < count; ++i) {
    reports[i].process.rank.rank = Rank(static_cast<std::uint32_t>(i));
    reports[i].progress.status = std::string(kStatusBytes, 's');
    for (std::size_t m = 0; m < kMetrics; ++m) {
      reports[i].progress.metrics.emplace_back(std::string(kMetricNameBytes, 'm'), std::string(kMetricValueBytes, '1'));
    }
  }
  return reports;
}

TEST(ProgressBudget, LeavesWhatFitsAsItIs) {
  daemon::ProgressBudget budget;
  auto reports = talkers(64);
  budget.fit(reports);
  for (const RankReport& report : reports) EXPECT_FALSE(report.progress.status.empty());
  reports.clear();
  budget.fit(reports);
}

TEST(ProgressBudget, ShowsEachOfTooManyRanksInTurn) {
  daemon::ProgressBudget budget;
  constexpr std::size_t kRanks = 1'000;
  std::vector<int> shown(kRanks);
  for (int beat = 0; beat < 8; ++beat) {
    auto reports = talkers(kRanks);
    budget.fit(reports);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < kRanks; ++i) {
      if (reports[i].progress.status.empty()) continue;
      ++shown[i];
      bytes += daemon::wire_size(reports[i].progress);
    }
    EXPECT_LE(bytes, daemon::kProgressBytesPerBeat);
    EXPECT_GT(bytes, daemon::kProgressBytesPerBeat / 2);
  }
  for (std::size_t i = 0; i < kRanks; ++i) EXPECT_GE(shown[i], 1) << i;
}

}  // namespace
}  // namespace monarch
