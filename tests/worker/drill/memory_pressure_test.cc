// A host of 100 MiB, as the test says it: a few of them are taken in truth.

#include "worker/drill/memory_pressure.h"

#include <gtest/gtest.h>

#include "transport/base/text.h"
#include "transport/process/read_small.h"
#include "worker/drill/shared_count.h"
#include "worker/drill/targets.h"

namespace monarch {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;
constexpr Duration kPatience = Duration::seconds(20);

class MemoryPressureTest : public testing::Test {
 protected:
  MemoryReading reading() const {
    return [this](std::uint64_t taken) {
      const std::uint64_t used = taken + others_->now();
      return Result<HostMemory>(HostMemory{.total = 100 * kMiB, .available = used < 40 * kMiB ? 40 * kMiB - used : 0});
    };
  }
  static std::uint64_t resident(pid_t pid) {
    const std::string told = read_small(text("/proc/", pid, "/smaps_rollup")).value_or("");
    return std::strtoull(told.c_str() + told.find("Private_Dirty:") + 14, nullptr, 10) << 10U;
  }

  std::unique_ptr<SharedCount> others_ = SharedCount::create().value();
};

TEST_F(MemoryPressureTest, LastsUntilItIsGivenBackAndEndsTheProcessFirstThatMakesIt) {
  auto effect = plan_memory_pressure(32 * kMiB, reading());
  ASSERT_TRUE(effect.ok());
  StrikeSeen seen;
  const Status struck = (*effect)->strike(kPatience, seen);
  ASSERT_TRUE(struck.ok()) << struck.error().message;
  ASSERT_EQ(seen.struck.size(), 1U);
  EXPECT_GE(resident(seen.struck[0]), 8 * kMiB);
  EXPECT_EQ(read_number(text("/proc/", seen.struck[0], "/oom_score_adj")), 1000U);
  EXPECT_TRUE((*effect)->give_back(kPatience).ok());
  EXPECT_FALSE(read_process(seen.struck[0]).has_value());
}

TEST_F(MemoryPressureTest, GivesWayWhereLessIsLeftThanAHostNeeds) {
  auto effect = plan_memory_pressure(8 * kMiB, reading());
  ASSERT_TRUE(effect.ok());
  StrikeSeen seen;
  ASSERT_TRUE((*effect)->strike(kPatience, seen).ok());
  const std::uint64_t before = resident(seen.struck[0]);
  others_->add(6 * kMiB);
  EXPECT_TRUE(until([&] { return resident(seen.struck[0]) + 2 * kMiB < before; }, kPatience));
  EXPECT_TRUE((*effect)->give_back(kPatience).ok());
}

TEST_F(MemoryPressureTest, IsNoneWhereSoLittleIsLeftAlreadyOrAHostNeedsMore) {
  EXPECT_EQ(plan_memory_pressure(40 * kMiB, reading()).error().message, "no more than 40MiB are available already");
  EXPECT_EQ(plan_memory_pressure(4 * kMiB, reading()).error().code, ErrorCode::kInvalid);
}

TEST_F(MemoryPressureTest, SaysWhatWasLeftWhereItCouldNotTakeEnough) {
  auto effect = plan_memory_pressure(32 * kMiB, [](std::uint64_t) {
    return Result<HostMemory>(HostMemory{.total = 2 * kMiB, .available = 40 * kMiB});
  });
  ASSERT_TRUE(effect.ok());
  StrikeSeen seen;
  const Status struck = (*effect)->strike(Duration::milliseconds(200), seen);
  ASSERT_FALSE(struck.ok());
  EXPECT_NE(struck.error().message.find("40MiB are available after "), std::string::npos) << struck.error().message;
  EXPECT_TRUE((*effect)->give_back(kPatience).ok());
}

TEST(HostMemoryReading, IsThatOfThisHost) {
  const auto now = host_memory();
  ASSERT_TRUE(now.ok());
  EXPECT_GT(now->available, 0U);
  EXPECT_GT(now->total, now->available);
}

}  // namespace
}  // namespace monarch
