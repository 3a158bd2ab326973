#include "supervisor/core/state/launch_failure.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace monarch {
namespace {

TEST(LaunchFailure, HasANameOfItsOwnForEachKind) {
  std::set<std::string> names;
  const int last = static_cast<int>(monarch_enum_max(LaunchFailureKind{}));
  for (int kind = 0; kind <= last; ++kind) names.insert(name_of(static_cast<LaunchFailureKind>(kind)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(last) + 1);
  EXPECT_FALSE(names.contains(""));
}

TEST(LaunchFailure, IsCutToWhatARecordHolds) {
  const std::string flood(1U << 20U, 'x');
  const LaunchFailure cut = bounded({.kind = LaunchFailureKind::kShellNoise,
                                     .phase = flood,
                                     .elapsed = Duration::seconds(3),
                                     .message = flood,
                                     .words = flood,
                                     .again = flood});
  EXPECT_LT(cut.phase.size() + cut.message.size() + cut.words.size() + cut.again.size(), 8'192U);
  EXPECT_EQ(cut.kind, LaunchFailureKind::kShellNoise);
  const LaunchFailure small{.kind = LaunchFailureKind::kRefused, .phase = "connect", .message = "refused"};
  EXPECT_EQ(bounded(small), small);
}

}  // namespace
}  // namespace monarch
