#include "transport/wire/from_host.h"

#include <gtest/gtest.h>

#include "tests/transport/wire/stretched.h"
#include "transport/base/limits.h"
#include "transport/wire/codec.h"

namespace monarch {
namespace {

constexpr std::size_t kLong = 300'000;
constexpr std::size_t kMany = limits::kRanksPerJob + 1;

template <class T>
class FromHost : public ::testing::Test {
 protected:
  static bool is_read(const T& message) {
    return decode_from_host<T>(encode_payload(message), std::size_t{1} << 30U).ok();
  }
};
// All that a worker says to who supervises it, and a vault or a post to another.
using Messages = ::testing::Types<Hello, Beat, Reserved, Goodbye, KeeperGone, Output, OutputGone, Stacks,
                                  BootstrapReply, VaultOffer, VaultKept, VaultAsk, VaultPiece, LineHello, LineAccepted,
                                  LineOther, LineResync, LineAsks, LineAnswer, LineAnswers, LineTakeBack, LineHeard>;
TYPED_TEST_SUITE(FromHost, Messages);

TYPED_TEST(FromHost, NoTextAndNoListIsLongerThanItMayBe) {
  TypeParam message{};
  Stretcher none(kLong, 0, 0);
  none.visit(message);
  EXPECT_TRUE(this->is_read(message));
  for (std::size_t which = 0; which < none.count(); ++which) {
    TypeParam stretched{};
    Stretcher(which, kLong, kMany).visit(stretched);
    EXPECT_FALSE(this->is_read(stretched)) << "text or list " << which << " of " << none.count();
  }
}

// Whoever adds it to another one, or takes it away, still has a time.
TYPED_TEST(FromHost, NoTimeIsBeyondACentury) {
  Exaggerator none(SIZE_MAX, true);
  TypeParam message{};
  none.visit(message);
  EXPECT_TRUE(this->is_read(message));
  for (const bool largest : {true, false}) {
    for (std::size_t which = 0; which < none.count(); ++which) {
      TypeParam exaggerated{};
      Exaggerator(which, largest).visit(exaggerated);
      const auto read = decode_from_host<TypeParam>(encode_payload(exaggerated));
      if (read.ok()) {
        EXPECT_TRUE(is_reckonable(*read)) << which;
      }
    }
  }
}

TEST(FromAHost, SaysWhichTimesCanBeReckonedWith) {
  EXPECT_TRUE(is_reckonable(Beat{.sent_at = Instant::since_boot(Duration::seconds(1))}));
  EXPECT_TRUE(is_reckonable(Beat{.content = {.ranks = {RankReport{.evidence_at = Instant::never()}}}}));
  EXPECT_FALSE(is_reckonable(Beat{.sent_at = Instant() - Duration::nanoseconds(1)}));
  EXPECT_FALSE(is_reckonable(Beat{.round_trip = Duration::forever()}));
  EXPECT_FALSE(is_reckonable(
      Beat{.content = {.ranks = {RankReport{}, RankReport{.ended_at = Instant() - Duration::seconds(1)}}}}));
}

TEST(FromAHost, ReadsNoAskThatNamesARankTwice) {
  LineAsks asks{.ranks = {{Rank(1), false}, {Rank(2), false}, {Rank(0), true}, {Rank(0), true}}};
  EXPECT_TRUE(decode_from_host<LineAsks>(encode_payload(asks)).ok()) << "of nobody there may be many";
  asks.ranks.push_back({Rank(1), false});
  EXPECT_FALSE(decode_from_host<LineAsks>(encode_payload(asks)).ok());
}

// A frame beside it would be taken as often as it is named.
TEST(FromAHost, ReadsNoAnswersTogetherOfWhichOneIsBeside) {
  LineAnswers answers;
  answers.answers.resize(2);
  answers.answers[1].outcome.body = {.bytes = 1, .way = BodyWay::kHere, .here = {"x"}};
  EXPECT_TRUE(decode_from_host<LineAnswers>(encode_payload(answers)).ok());
  answers.answers[1].outcome.body = {.bytes = 1, .way = BodyWay::kBeside};
  EXPECT_FALSE(decode_from_host<LineAnswers>(encode_payload(answers)).ok());
  answers.answers.assign(kAnswersTogether + 1, {});
  EXPECT_FALSE(decode_from_host<LineAnswers>(encode_payload(answers)).ok());
}

TEST(FromAHost, TakesWhatARankMaySayOfItself) {
  RankReport report;
  report.progress.phase = std::string(kPhaseBytes, 'p');
  report.progress.status = std::string(kStatusBytes, 's');
  for (std::size_t i = 0; i < kMetrics; ++i) {
    report.progress.metrics.emplace_back(std::string(kMetricNameBytes, 'm'), std::string(kMetricValueBytes, '1'));
  }
  report.commit = CommitRequest{.what = std::string(kCommitWhatBytes, 'w')};
  EXPECT_TRUE(decode_from_host<Beat>(encode_payload(Beat{.content = {.ranks = {report}}})).ok());
  for (std::string* text : {&report.progress.phase, &report.progress.status, &report.commit->what}) {
    text->push_back('x');
    EXPECT_FALSE(decode_from_host<Beat>(encode_payload(Beat{.content = {.ranks = {report}}})).ok());
    text->pop_back();
  }
  report.progress.metrics.emplace_back("m", "1");
  EXPECT_FALSE(decode_from_host<Beat>(encode_payload(Beat{.content = {.ranks = {report}}})).ok());
}

}  // namespace
}  // namespace monarch
