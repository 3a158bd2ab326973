#include "supervisor/core/health/pace.h"

#include <gtest/gtest.h>

#include <vector>

namespace monarch {
namespace {

Instant at(std::int64_t milliseconds) { return Instant::since_boot(Duration::milliseconds(milliseconds)); }

class PaceOf : public ::testing::Test {
 protected:
  void want(std::uint32_t hosts) {
    for (std::uint32_t i = 0; i < hosts; ++i) pace.want(HostId(i));
  }
  std::vector<HostId> begin(std::int64_t now) {
    std::vector<HostId> begun;
    while (const auto host = pace.next(at(now))) begun.push_back(*host);
    return begun;
  }
  Pace pace;
};

TEST_F(PaceOf, AThousandHostsGrowsWhileTheyAnswer) {
  want(1'000);
  std::vector<std::size_t> rounds;
  for (std::int64_t now = 0; !pace.is_idle(); now += 100) {
    const auto begun = begin(now);
    rounds.push_back(begun.size());
    for (const HostId host : begun) pace.answered(host);
  }
  EXPECT_EQ(rounds, (std::vector<std::size_t>{16, 32, 64, 128, 256, 504}));
}

TEST_F(PaceOf, HostsThatAreLateIsHalvedOnceForThoseThatWereUnderWayTogether) {
  want(1'000);
  EXPECT_EQ(begin(0).size(), 16U);
  EXPECT_TRUE(begin(1'999).empty());
  EXPECT_EQ(begin(2'000).size(), 8U) << "who is late is not awaited";
  EXPECT_EQ(pace.window(), 8U);
  EXPECT_EQ(begin(4'000).size(), Pace::kLeast);
  EXPECT_EQ(begin(6'000).size(), Pace::kLeast) << "however late they are, it goes on";
  pace.answered(HostId(0));
  EXPECT_EQ(pace.window(), Pace::kLeast) << "one that answers late says nothing of now";
}

TEST_F(PaceOf, HostsThatAreNotWantedAnyMoreForgetsThem) {
  want(20);
  EXPECT_EQ(begin(0).size(), 16U);
  pace.forget(HostId(3));   // under way
  pace.forget(HostId(16));  // it waits
  EXPECT_EQ(begin(1), std::vector<HostId>{HostId(17)});
  pace.want(HostId(18));
  pace.answered(HostId(0));
  EXPECT_EQ(begin(2), (std::vector<HostId>{HostId(18), HostId(19)})) << "each once";
}

}  // namespace
}  // namespace monarch
