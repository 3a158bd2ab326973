#include "transport/wire/from_host.h"

#include <gtest/gtest.h>

#include "tests/transport/wire/stretched.h"

namespace monarch {
namespace {

constexpr std::size_t kLong = 300'000;

template <class T>
class FromHost : public ::testing::Test {
 protected:
  static bool is_read(const T& message) {
    return decode_from_host<T>(encode_payload(message), std::size_t{1} << 30U).ok();
  }
};
// All that a worker says to who supervises it.
using Messages =
    ::testing::Types<Hello, Beat, Reserved, Goodbye, KeeperGone, Output, OutputGone, Stacks, BootstrapReply>;
TYPED_TEST_SUITE(FromHost, Messages);

TYPED_TEST(FromHost, NoTextAndNoListIsLongerThanItMayBe) {
  TypeParam message{};
  Stretcher none(kLong, 0, 0);
  none.visit(message);
  EXPECT_TRUE(this->is_read(message));
  for (std::size_t which = 0; which < none.count(); ++which) {
    TypeParam stretched{};
    Stretcher(which, kLong, kLong).visit(stretched);
    EXPECT_FALSE(this->is_read(stretched)) << "text or list " << which << " of " << none.count();
  }
}

TEST(FromAHost, TakesWhatARankMaySayOfItself) {
  RankReport report;
  report.progress.phase = std::string(kPhaseBytes, 'p');
  report.progress.status = std::string(kStatusBytes, 's');
  for (std::size_t i = 0; i < kMetrics; ++i) {
    report.progress.metrics.emplace_back(std::string(kMetricNameBytes, 'm'), std::string(kMetricValueBytes, '1'));
  }
  report.commit = CommitRequest{.what = std::string(kCommitWhatBytes, 'w')};
  EXPECT_TRUE(decode_from_host<Beat>(encode_payload(Beat{.ranks = {report}})).ok());
  for (std::string* text : {&report.progress.phase, &report.progress.status, &report.commit->what}) {
    text->push_back('x');
    EXPECT_FALSE(decode_from_host<Beat>(encode_payload(Beat{.ranks = {report}})).ok());
    text->pop_back();
  }
  report.progress.metrics.emplace_back("m", "1");
  EXPECT_FALSE(decode_from_host<Beat>(encode_payload(Beat{.ranks = {report}})).ok());
}

}  // namespace
}  // namespace monarch
