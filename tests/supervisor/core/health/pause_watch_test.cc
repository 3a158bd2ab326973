#include "supervisor/core/health/pause_watch.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

constexpr MeshId kMesh{0};
constexpr GangId kGang{0};

class Pauses : public testing::Test {
 protected:
  // Milliseconds from the last step before it until it was over; nothing: there was none.
  std::optional<std::int64_t> after(Duration gap, std::uint64_t steps = 1) {
    const Instant before = now_;
    now_ = now_ + gap;
    step_ += steps;
    const auto told = watch_.heard(kMesh, kGang, generation_, step_, now_);
    if (!told) return std::nullopt;
    EXPECT_EQ(told->from, before);
    EXPECT_EQ(told->generation, generation_);
    return (told->to - told->from).count_milliseconds();
  }
  void usual(Duration each, int words = 10) {
    for (int i = 0; i < words; ++i) EXPECT_EQ(after(each), std::nullopt);
  }

  PauseWatch watch_;
  Generation generation_{Term(1), 1};
  Instant now_ = Instant::since_boot(Duration::seconds(1'000));
  std::uint64_t step_ = 0;
};

TEST_F(Pauses, AreLongerThanASecondAndFiveUsualSteps) {
  usual(Duration::milliseconds(20));
  EXPECT_EQ(after(Duration::milliseconds(900)), std::nullopt);
  EXPECT_EQ(after(Duration::milliseconds(3'000)), 3'000);
  usual(Duration::milliseconds(20));
}

TEST_F(Pauses, OfLongStepsAreLonger) {
  usual(Duration::seconds(2));
  EXPECT_EQ(after(Duration::seconds(9)), std::nullopt);
  EXPECT_EQ(after(Duration::seconds(30)), 30'000);
}

TEST_F(Pauses, AreWhatManyStepsBetweenTwoBeatsLeaveOver) {
  usual(Duration::milliseconds(20));
  EXPECT_EQ(after(Duration::milliseconds(5'000), 250), std::nullopt) << "it did them all the while";
  EXPECT_EQ(after(Duration::milliseconds(5'000), 101), 3'000);
}

TEST_F(Pauses, AreNotBetweenTwoGenerations) {
  usual(Duration::milliseconds(20));
  generation_.counter = 2;
  EXPECT_EQ(after(Duration::seconds(60)), std::nullopt);
  EXPECT_EQ(after(Duration::seconds(60)), 60'000) << "what is usual is so after it, too";
}

TEST_F(Pauses, AreNotWhereARankIsBehindOrSaysNothingNew) {
  usual(Duration::milliseconds(20));
  EXPECT_EQ(watch_.heard(kMesh, kGang, generation_, step_, now_ + Duration::seconds(60)), std::nullopt);
  EXPECT_EQ(watch_.heard(kMesh, kGang, generation_, step_ - 3, now_ + Duration::seconds(60)), std::nullopt);
  EXPECT_EQ(after(Duration::seconds(2)), 2'000);
}

TEST_F(Pauses, EndWhereAProgramHasBecomeSlow) {
  usual(Duration::milliseconds(100));
  int told = 0;
  for (int i = 0; i < 100; ++i) told += after(Duration::seconds(3)) ? 1 : 0;
  EXPECT_GT(told, 0);
  EXPECT_LT(told, 40);
  EXPECT_EQ(after(Duration::seconds(3)), std::nullopt);
}

}  // namespace
}  // namespace monarch
