#include "supervisor/core/health/term_claims.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

constexpr Duration kPatience = Duration::seconds(10);
const std::vector<HostId> kHosts{HostId(0), HostId(1), HostId(2), HostId(3)};

Instant at(std::int64_t seconds) { return Instant::since_boot(Duration::seconds(seconds)); }

TEST(TermClaims, AreBelievedOfMoreThanHalfOfTheHosts) {
  TermClaims claims(kPatience);
  for (const std::uint32_t host : {0U, 2U}) EXPECT_TRUE(claims.claim(HostId(host), Term(9), at(1)));
  EXPECT_FALSE(claims.are_believed(kHosts)) << "half is not enough";
  EXPECT_TRUE(claims.are_believed({HostId(0), HostId(2), HostId(3)}));
  EXPECT_TRUE(claims.claim(HostId(3), Term(9), at(1)));
  EXPECT_TRUE(claims.are_believed(kHosts));
  EXPECT_FALSE(claims.are_believed({HostId(1)}));
  EXPECT_FALSE(claims.are_believed({}));
}

// Neither the first that comes nor the last that leaves is most of them.
TEST(TermClaims, CountOfHostsThatAreComingAndAtTheEndOfThoseThatHaveLeft) {
  JobState state;
  state.phase = JobPhase::kStarting;
  for (const HostPhase phase : {HostPhase::kJoined, HostPhase::kLaunching, HostPhase::kLaunched, HostPhase::kCold,
                                HostPhase::kEnded, HostPhase::kLost, HostPhase::kDestroying}) {
    state.hosts.emplace_back().phase = phase;
  }
  EXPECT_EQ(jury(state), (std::vector{HostId(0), HostId(1), HostId(2)}));
  state.phase = JobPhase::kShuttingDown;
  EXPECT_EQ(jury(state), (std::vector{HostId(0), HostId(1), HostId(2), HostId(4), HostId(6)}));
}

TEST(TermClaims, AHostAloneHasItsTimeHoweverOftenItSaysSo) {
  TermClaims claims(kPatience);
  EXPECT_EQ(claims.next_deadline(), Instant::never());
  EXPECT_TRUE(claims.claim(HostId(1), Term(7), at(5)));
  EXPECT_FALSE(claims.claim(HostId(1), Term(8), at(9)));
  EXPECT_FALSE(claims.claim(HostId(1), Term(6), at(9)));
  EXPECT_EQ(claims.claimed_by(HostId(1)), Term(8));
  EXPECT_EQ(claims.next_deadline(), at(15));
  EXPECT_TRUE(claims.alone(at(14)).empty());
  EXPECT_EQ(claims.alone(at(15)), std::vector{HostId(1)});
  claims.forget(HostId(1));
  EXPECT_EQ(claims.claimed_by(HostId(1)), std::nullopt);
  EXPECT_TRUE(claims.alone(at(99)).empty());
  EXPECT_EQ(claims.next_deadline(), Instant::never());
}

}  // namespace
}  // namespace monarch
