#include "worker/core/servant_silence.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

constexpr Duration kMost = Duration::milliseconds(1'500);

Instant at(std::int64_t milliseconds) { return Instant() + Duration::milliseconds(milliseconds); }
Duration ms(std::int64_t milliseconds) { return Duration::milliseconds(milliseconds); }

TEST(ServantSilence, IsTooLongAtItsTime) {
  ServantSilence silence(kMost);
  silence.heard(at(10'000), ms(70));
  EXPECT_FALSE(silence.is_too_long(at(11'499), ms(70)));
  EXPECT_TRUE(silence.is_too_long(at(11'500), ms(70)));
  silence.heard(at(11'500), ms(70));
  EXPECT_FALSE(silence.is_too_long(at(12'999), ms(70)));
}

TEST(ServantSilence, LeavesOutWhatItWaitedForAProcessor) {
  ServantSilence silence(kMost);
  silence.heard(at(10'000), ms(500));
  EXPECT_FALSE(silence.is_too_long(at(13'000), ms(2'001)));
  EXPECT_TRUE(silence.is_too_long(at(13'000), ms(2'000)));
}

TEST(ServantSilence, EndsAtTheLatestAfterElevenTimesItsTime) {
  ServantSilence silence(kMost);
  silence.heard(at(10'000), ms(0));
  EXPECT_FALSE(silence.is_too_long(at(26'499), ms(16'499)));
  EXPECT_TRUE(silence.is_too_long(at(26'500), ms(16'500)));
}

TEST(ServantSilence, LeavesOutWhatNobodyLookedAt) {
  ServantSilence silence(kMost);
  silence.heard(at(10'000), ms(0));
  silence.did_not_look(ms(4'000), at(14'000));
  EXPECT_FALSE(silence.is_too_long(at(15'499), ms(0)));
  EXPECT_TRUE(silence.is_too_long(at(15'500), ms(0)));
}

// The kernel's account of another process, as after a take-over.
TEST(ServantSilence, TakesNothingOfAnAccountThatGoesBack) {
  ServantSilence silence(kMost);
  silence.heard(at(10'000), ms(9'000));
  EXPECT_TRUE(silence.is_too_long(at(11'500), ms(0)));
}

}  // namespace
}  // namespace monarch
