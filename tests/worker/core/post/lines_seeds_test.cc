// Lines under random faults: connections that break and leave messages behind, ranks and posts that die, deadlines, and
// targets that keep few answers. Each call has one outcome, runs at most once, in the order of its root, and has an end
// that a fault explains; and a driver that breaks a rule is found out.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "tests/worker/core/post/lines_world.h"

namespace monarch::post_test {
namespace {

constexpr int kTurns = 600;
constexpr std::uint64_t kSeeds = 300;

TEST(LinesSeeds, EachCallHasOneOutcomeWhateverHappens) {
  std::array<std::size_t, 4> ended{};
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    LinesWorld world(seed);
    world.run(kTurns);
    ASSERT_EQ(world.broken(), "") << "seed " << seed;
    for (std::size_t i = 0; i < ended.size(); ++i) ended[i] += world.ended_as(static_cast<LinesWorld::Outcome>(i));
  }
  // Else it shows nothing.
  for (std::size_t i = 0; i < ended.size(); ++i) EXPECT_GT(ended[i], kSeeds) << "outcome " << i;
}

struct NamedMutant {
  LineMutant mutant;
  const char* name;
};

class LineMutants : public ::testing::TestWithParam<NamedMutant> {};

TEST_P(LineMutants, AreFoundOut) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    LinesWorld world(seed, GetParam().mutant);
    world.run(kTurns);
    if (!world.broken().empty()) return;
  }
  FAIL() << "no seed finds it out";
}

INSTANTIATE_TEST_SUITE_P(All, LineMutants,
                         ::testing::Values(NamedMutant{LineMutant::kRunWhatIsDropped, "RunWhatIsDropped"},
                                           NamedMutant{LineMutant::kRunWhatCameEarly, "RunWhatCameEarly"},
                                           NamedMutant{LineMutant::kIgnoreResync, "IgnoreResync"},
                                           NamedMutant{LineMutant::kNoHelloOnConnection, "NoHelloOnConnection"},
                                           NamedMutant{LineMutant::kSayNothingAgain, "SayNothingAgain"},
                                           NamedMutant{LineMutant::kMistakeTheStart, "MistakeTheStart"},
                                           NamedMutant{LineMutant::kHearForThePredecessor, "HearForThePredecessor"},
                                           NamedMutant{LineMutant::kForgetWhatIsGone, "ForgetWhatIsGone"},
                                           NamedMutant{LineMutant::kSendBeforeAccepted, "SendBeforeAccepted"},
                                           NamedMutant{LineMutant::kSkipWhatHasEnded, "SkipWhatHasEnded"},
                                           NamedMutant{LineMutant::kOverhearAHole, "OverhearAHole"},
                                           NamedMutant{LineMutant::kForgetRunning, "ForgetRunning"}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace monarch::post_test
