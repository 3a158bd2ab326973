#include "supervisor/core/state/host_life.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace monarch {
namespace {

TEST(HostLife, IsWhatItsHeaderDraws) {
  using enum HostPhase;
  const std::set<std::pair<HostPhase, HostPhase>> drawn = {{kCold, kLaunching},
                                                           {kLaunching, kLaunched},
                                                           {kLaunched, kJoined},
                                                           {kLaunching, kEnded},
                                                           {kLaunched, kEnded},
                                                           {kJoined, kEnded},
                                                           {kLaunching, kDestroying},
                                                           {kLaunched, kDestroying},
                                                           {kJoined, kDestroying},
                                                           {kDestroying, kDestroying},
                                                           {kDestroying, kEnded},
                                                           {kDestroying, kLost},
                                                           {kLost, kEnded},
                                                           {kEnded, kCold},
                                                           {kLost, kCold}};
  for (int before = 0; before <= static_cast<int>(monarch_enum_max(HostPhase{})); ++before) {
    for (int next = 0; next <= static_cast<int>(monarch_enum_max(HostPhase{})); ++next) {
      const std::pair step{static_cast<HostPhase>(before), static_cast<HostPhase>(next)};
      EXPECT_EQ(may_follow(step.first, step.second), drawn.contains(step)) << before << " to " << next;
    }
  }
}

TEST(HostLife, GoesOnByOneStep) {
  HostState host;
  to(host, HostPhase::kLaunching);
  EXPECT_EQ(host.phase, HostPhase::kLaunching);
  to(host, HostPhase::kLaunched);
  EXPECT_EQ(host.phase, HostPhase::kLaunched);
}

TEST(HostLifeDeathTest, HasOneWorkerAtATime) {
  HostState host;
  to(host, HostPhase::kLaunching);
  to(host, HostPhase::kEnded);
  EXPECT_DEATH(to(host, HostPhase::kLaunching), "I19");
}

}  // namespace
}  // namespace monarch
