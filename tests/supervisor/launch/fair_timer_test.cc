#include "supervisor/launch/fair_timer.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/transport/loop/loop_fixture.h"

namespace monarch {
namespace {

constexpr Duration kShort = Duration::milliseconds(50);

class FairTimes : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    timer_ = std::make_unique<FairTimer>(loop());
  }
  FairTimer::Over note() {
    return [this](const std::string& late) { late_ = late; };
  }

  std::unique_ptr<FairTimer> timer_;
  std::optional<std::string> late_;
};

TEST_F(FairTimes, AreUpOnceAndSayNothingMoreWhereNobodyWasLate) {
  timer_->start(kShort, note());
  EXPECT_TRUE(timer_->runs());
  ASSERT_TRUE(run_until([&] { return late_.has_value(); }));
  EXPECT_FALSE(timer_->runs());
}

TEST_F(FairTimes, CountNothingOfWhatTheLoopWasLate) {
  loop().read_clock();
  const Instant began = loop().now() - Duration::seconds(60);  // and has not turned since
  timer_->start(FairDeadline(kShort, began), note());
  ASSERT_TRUE(run_until([&] { return late_.has_value(); }));
  EXPECT_GE(loop().now(), began + Duration::seconds(60) + kShort) << "what was left is left still";
  EXPECT_EQ(late_->substr(0, 26), " (this machine was late by");
}

TEST_F(FairTimes, MayEndTheTimer) {
  timer_->start(kShort, [this](const std::string& late) {
    timer_.reset();
    late_ = late;
  });
  ASSERT_TRUE(run_until([&] { return late_.has_value(); }));
}

TEST_F(FairTimes, AreNotUpOnceTheyWereStopped) {
  timer_->start(kShort, note());
  timer_->stop();
  bool later = false;
  loop().at(loop().now() + kShort * 2, [&later] { later = true; });
  ASSERT_TRUE(run_until([&] { return later; }));
  EXPECT_FALSE(late_.has_value());
}

}  // namespace
}  // namespace monarch
