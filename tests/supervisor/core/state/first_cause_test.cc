#include "supervisor/core/state/first_cause.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "tests/supervisor/core/fixtures.h"
#include "transport/messages/describe_end.h"

namespace monarch {
namespace {

using fixtures::exited;
using fixtures::killed;
using fixtures::killed_by_us;

EndedRank ended(std::uint32_t rank, RankEnd end, int milliseconds, int uncertainty_milliseconds = 0) {
  return {.process = {{MeshId(0), Rank(rank)}, {}},
          .host = HostId(0),
          .pid = 0,
          .end = std::move(end),
          .ended_at = Instant::since_boot(Duration::milliseconds(milliseconds)),
          .uncertainty = Duration::milliseconds(uncertainty_milliseconds)};
}

TEST(FirstCause, IsTheEarliestEndWhateverArrivedFirst) {
  EXPECT_EQ(first_cause({ended(0, killed(6), 105), ended(1, exited(7), 100)}), 1U);
}

TEST(FirstCause, IsNeverAnEndAfterASignalOfOurs) {
  EXPECT_EQ(first_cause({ended(0, killed_by_us(9), 90), ended(1, exited(7), 100)}), 1U);
  EXPECT_EQ(first_cause({ended(0, killed_by_us(9), 90)}), std::nullopt);
}

EndedRank with_error(EndedRank rank, int milliseconds) {
  rank.evidence_at = Instant::since_boot(Duration::milliseconds(milliseconds));
  return rank;
}

TEST(FirstCause, IsWhoWroteItsErrorFirstAlsoWhereItWasKilledBeforeItExited) {
  const std::vector<EndedRank> ends = {with_error(ended(0, killed_by_us(9), 250), 10),
                                       with_error(ended(1, exited(1), 200), 60), ended(2, killed_by_us(9), 251)};
  EXPECT_EQ(first_cause(ends), 0U);
  EXPECT_EQ(first_to_exit(ends), 1U);
}

TEST(FirstCause, IsTheFirstToExitWhereItsErrorOrItsEndCameBeforeThoseOfOthers) {
  EXPECT_EQ(first_cause({with_error(ended(0, killed_by_us(9), 250), 60), with_error(ended(1, exited(1), 200), 10)}),
            1U);
  EXPECT_EQ(first_cause({with_error(ended(0, exited(1), 300), 130), ended(1, exited(7), 100)}), 1U)
      << "a peer that misses it has a traceback";
  EXPECT_EQ(first_cause({with_error(ended(0, killed_by_us(9), 90), 50)}), std::nullopt) << "nobody has failed";
}

TEST(FirstCause, DoesNotTrustAClockThatMayBeWrongByMore) {
  EndedRank there = with_error(ended(0, killed_by_us(9), 250, 40), 20);
  there.host = HostId(1);
  EXPECT_EQ(first_cause({there, with_error(ended(1, exited(1), 200, 20), 70)}), 1U);
  EXPECT_EQ(first_cause({there, with_error(ended(1, exited(1), 200, 20), 90)}), 0U);
}

TEST(FirstCause, PutsWhatCouldNotBeExecutedBeforeWhatWasWritten) {
  RankEnd missing{.kind = EndKind::kNotExecuted, .value = ENOENT, .detail = "exec /bin/nonesuch"};
  EXPECT_EQ(first_cause({with_error(ended(0, killed_by_us(9), 250), 10), ended(1, missing, 200)}), 1U);
}

TEST(FirstCause, IsNeverAnEndWithCodeZero) {
  EXPECT_EQ(first_cause({ended(0, exited(0), 1), ended(1, exited(3), 100)}), 1U);
  EXPECT_EQ(first_cause({ended(0, exited(0), 1)}), std::nullopt);
}

TEST(FirstCause, PutsExecErrorsAndOutOfMemoryBeforeAllElse) {
  RankEnd missing{.kind = EndKind::kNotExecuted, .value = ENOENT, .detail = "exec /bin/nonesuch"};
  EXPECT_EQ(first_cause({ended(0, exited(1), 10), ended(1, missing, 400)}), 1U);
  RankEnd oom = killed(9);
  oom.out_of_memory = true;
  EXPECT_EQ(first_cause({ended(0, killed(6), 10), ended(1, oom, 30)}), 1U);
}

TEST(FirstCause, LetsTheClassBreakTiesWithinTheClocksUncertaintyOnly) {
  const auto elsewhere = [](EndedRank end) {
    end.host = HostId(1);
    return end;
  };
  EXPECT_EQ(first_cause({ended(0, exited(1), 100, 2), elsewhere(ended(1, killed(11), 103, 2))}), 1U);
  EXPECT_EQ(first_cause({ended(0, exited(1), 100, 2), elsewhere(ended(1, killed(11), 105, 2))}), 0U);
}

TEST(FirstCause, KnowsTheOrderOnOneHostExactly) {
  std::vector<EndedRank> ends{ended(0, killed(6), 100, 5), ended(1, exited(7), 100, 5)};
  ends[0].ended_at = ends[0].ended_at + Duration::nanoseconds(1);
  EXPECT_EQ(first_cause(ends), 1U);
}

TEST(FirstCause, SaysBothWhereTheyWereEndingWhenTheHostLooked) {
  const std::vector<EndedRank> ends{ended(0, exited(1), 100), ended(1, killed(9), 100), ended(2, killed(6), 100)};
  EXPECT_EQ(first_cause(ends), 1U) << "who exits or aborts may have lost a peer";
  EXPECT_EQ(as_early_as(1, ends), (std::vector<std::size_t>{0, 2}));
  EXPECT_TRUE(as_early_as(0, {ended(0, exited(1), 100), ended(1, killed(9), 101)}).empty()) << "the order is known";
  EXPECT_TRUE(as_early_as(0, {ended(0, killed_by_us(9), 90), ended(1, exited(7), 100)}).empty()) << "it was not first";
  EXPECT_TRUE(as_early_as(0, ends).empty()) << "nor is one that something else than clocks told apart";
}

TEST(FirstCause, DoesNotDependOnTheOrderOfArrival) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<EndedRank> ends;
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    for (std::uint32_t r = 0; r < 6; ++r) {
      RankEnd end = pick(2) == 0 ? exited(pick(3)) : killed(6 + pick(6));
      end.after_our_signal = pick(4) == 0;
      ends.push_back(ended(r, end, pick(10), pick(3)));
      ends.back().host = HostId(static_cast<std::uint32_t>(pick(3)));
    }
    const auto first = first_cause(ends);
    std::vector<EndedRank> shuffled = ends;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    const auto again = first_cause(shuffled);
    ASSERT_EQ(first.has_value(), again.has_value()) << "round " << round << " of seed 7";
    if (first) {
      EXPECT_EQ(ends[*first].process, shuffled[*again].process) << "round " << round << " of seed 7";
    }
  }
}

TEST(DescribeEnd, SaysWhatHappened) {
  EXPECT_EQ(describe_end(exited(7)), "exit code 7");
  EXPECT_EQ(describe_end(killed(11)), "killed by SIGSEGV");
  RankEnd missing{.kind = EndKind::kNotExecuted, .value = ENOENT, .detail = "exec /bin/nonesuch"};
  EXPECT_EQ(describe_end(missing), "could not be executed: exec /bin/nonesuch: No such file or directory");
}

TEST(ExitCodeOf, IsWhatAShellWouldGive) {
  EXPECT_EQ(exit_code_of(exited(7)), 7);
  EXPECT_EQ(exit_code_of(killed(11)), 139);
  EXPECT_EQ(exit_code_of({.kind = EndKind::kNotExecuted, .value = ENOENT, .detail = {}}), 127);
  EXPECT_EQ(exit_code_of({.kind = EndKind::kNotExecuted, .value = EACCES, .detail = {}}), 126);
  EXPECT_EQ(exit_code_of({.kind = EndKind::kNotExecuted, .value = ENOSPC, .detail = {}}), 92);
}

}  // namespace
}  // namespace monarch
