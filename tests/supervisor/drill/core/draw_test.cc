#include "supervisor/drill/core/draw.h"

#include <gtest/gtest.h>

#include <set>

namespace monarch::drill {
namespace {

TEST(DrillDraw, OfAFaultDoesNotDependOnTheOthers) {
  const Duration mean = Duration::seconds(60);
  EXPECT_EQ(draw_gap({42, 3, 7}, mean), draw_gap({42, 3, 7}, mean));
  EXPECT_NE(draw_gap({42, 3, 7}, mean), draw_gap({42, 3, 8}, mean));
  EXPECT_NE(draw_gap({42, 3, 7}, mean), draw_gap({42, 4, 7}, mean));
  EXPECT_NE(draw_gap({42, 3, 7}, mean), draw_gap({43, 3, 7}, mean));
}

TEST(DrillDraw, HasGapsOfTheirMeanAndWithinTenOfIt) {
  const Duration mean = Duration::seconds(20);
  double sum = 0;
  std::uint32_t above = 0;
  constexpr std::uint32_t kDraws = 10'000;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const double gap = draw_gap({1, 0, i}, mean).count_seconds();
    EXPECT_GE(gap, 0);
    EXPECT_LE(gap, 200);
    sum += gap;
    above += gap > 20 ? 1U : 0U;
  }
  EXPECT_NEAR(sum / kDraws, 20, 1);
  EXPECT_NEAR(above / double{kDraws}, 0.368, 0.02);  // 1/e
}

TEST(DrillDraw, MeansEveryoneInTheEnd) {
  std::set<std::size_t> drawn;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::size_t index = draw_index({7, 1, i}, 8);
    EXPECT_LT(index, 8U);
    drawn.insert(index);
  }
  EXPECT_EQ(drawn.size(), 8U);
  EXPECT_EQ(draw_index({7, 1, 0}, 1), 0U);
}

}  // namespace
}  // namespace monarch::drill
