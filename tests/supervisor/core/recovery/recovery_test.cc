#include "supervisor/core/recovery/recovery.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "supervisor/core/recovery/restart_budget.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

Supervision policy_of(std::optional<std::uint32_t> restarts, std::optional<std::uint32_t> reallocations) {
  Supervision policy;
  policy.restart = {.max = restarts, .jitter = 0};
  policy.reallocate = {.max = reallocations};
  return policy;
}

FailureFacts ended(RankEnd end, std::uint32_t failures = 0) { return {.end = std::move(end), .failures = failures}; }

TEST(Recovery, DecidesByCauseFirstAndBudgetSecond) {
  const Supervision policy = policy_of(4, 2);
  RankEnd starved = fixtures::killed(9);
  starved.out_of_memory = true;
  struct Case {
    FailureFacts facts;
    Remedy remedy;
    std::string rule;
  };
  const std::vector<Case> cases = {
      {ended({.kind = EndKind::kNotExecuted, .value = 2, .detail = {}}), Remedy::kFail, "exec error: fail, no retry"},
      {ended({.kind = EndKind::kNotExecuted, .value = ENOSPC, .detail = {}}), Remedy::kRestart,
       "its host could not start it: restart 1 of 4 in 10m, at once; then: restart 2"},
      {ended({.kind = EndKind::kNotExecuted, .value = EMFILE, .detail = {}}), Remedy::kFail,
       "exec error: fail, no retry"},
      {ended({.kind = EndKind::kNotExecuted, .value = EAGAIN, .detail = {}}), Remedy::kFail,
       "exec error: fail, no retry"},
      {ended({.kind = EndKind::kSetupFailed, .value = 3, .detail = {}}), Remedy::kFail, "setup failed: fail, no retry"},
      {ended(fixtures::exited(2)), Remedy::kFail, "fatal_exit_codes has 2: fail"},
      {ended(fixtures::killed(2)), Remedy::kRestart, "restart 1 of 4 in 10m, at once; then: restart 2"},
      {ended(fixtures::exited(7), 1), Remedy::kRestart, "restart 2 of 4 in 10m, after 500ms; then: restart 3"},
      {ended(fixtures::exited(7), 3), Remedy::kRestart, "restart 4 of 4 in 10m, after 2s; then: fail"},
      {ended(fixtures::exited(7), 4), Remedy::kFail, "restart: 4 of 4 in 10m are spent: fail"},
      {ended(starved), Remedy::kRestart,
       "out of memory: retried once: restart 1 of 4 in 10m, at once; then: restart 2"},
      {{.end = starved, .failures = 1, .out_of_memory_before = true},
       Remedy::kFail,
       "out of memory again: retried once: fail"},
      {{.end = fixtures::killed(11), .failures = 2, .crashes_at_step = 2, .step = 17},
       Remedy::kRestart,
       "restart 3 of 4 in 10m, after 1s; then: restart 4"},
      {{.end = fixtures::killed(11), .failures = 2, .crashes_at_step = 3, .step = 17},
       Remedy::kFail,
       "crash 3 in a row at step 17: fail"},
      {{.kind = FailureKind::kRanksEnded}, Remedy::kRestart, "restart 1 of 4 in 10m, at once; then: restart 2"},
      {{.kind = FailureKind::kHostLost, .slots_out = 1, .hosts_left = 1},
       Remedy::kReplace,
       "host lost: replacement 1 of 2 in 1h; then: replacement 2"},
      {{.kind = FailureKind::kHostLost, .slots_out = 1, .hosts_left = 1, .reallocations = 1},
       Remedy::kReplace,
       "host lost: replacement 2 of 2 in 1h; then: fail"},
      {{.kind = FailureKind::kHostLost, .slots_out = 1, .hosts_left = 1, .reallocations = 1, .may_park = true},
       Remedy::kReplace,
       "host lost: replacement 2 of 2 in 1h; then: its gang is parked"},
      {{.kind = FailureKind::kHostLost, .slots_out = 2, .hosts_left = 1},
       Remedy::kFail,
       "host lost: no other host is left: fail"},
      {{.kind = FailureKind::kHostLost, .slots_out = 1, .hosts_left = 0, .may_park = true},
       Remedy::kPark,
       "host lost: no other host is left: shrink: its gang is parked"},
      {{.kind = FailureKind::kHostLost,
        .slots_out = 2,
        .hosts_left = 1,
        .hosts_due = 1,
        .due_in = Duration::seconds(9)},
       Remedy::kAwait,
       "host lost: no other host is left, one may be launched again in 9s: replacement 2 of 2 in 1h"},
      {{.kind = FailureKind::kHostLost, .slots_out = 1, .hosts_left = 0, .hosts_due = 1, .may_park = true},
       Remedy::kPark,
       "host lost: no other host is left: shrink: its gang is parked"},
      {{.kind = FailureKind::kHostLost, .slots_out = 1, .reallocations = 2, .hosts_due = 1, .out = "host drained"},
       Remedy::kFail,
       "host drained: reallocate: 2 of 2 in 1h are spent: fail"},
      {{.kind = FailureKind::kHostLost, .slots_out = 1, .hosts_left = 1, .reallocations = 2},
       Remedy::kFail,
       "host lost: reallocate: 2 of 2 in 1h are spent: fail"},
  };
  for (const Case& one : cases) {
    const Recovery decided = recover(policy, one.facts);
    EXPECT_EQ(decided.remedy, one.remedy) << one.rule;
    EXPECT_EQ(decided.rule, one.rule);
  }
}

TEST(Recovery, OfAnUnlimitedBudgetIsNeverSpent) {
  const Recovery decided = recover(policy_of(std::nullopt, 0), ended(fixtures::exited(7), 99));
  EXPECT_EQ(decided.remedy, Remedy::kRestart);
  EXPECT_EQ(decided.wait, Duration::seconds(30));
  EXPECT_EQ(decided.rule, "restart 100, unlimited, after 30s; then: restart 101");
}

TEST(RestartBudget, DoublesTheBackOffUpToItsLimitAndKeepsTheJitterInBounds) {
  RestartPolicy policy{.max = 100};
  std::set<std::int64_t> waits;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    EXPECT_EQ(backoff_of(policy, 0, seed), Duration::zero());
    const Duration second = backoff_of(policy, 1, seed);
    EXPECT_GE(second, Duration::milliseconds(375));
    EXPECT_LE(second, Duration::milliseconds(625));
    EXPECT_EQ(second, backoff_of(policy, 1, seed));
    const Duration late = backoff_of(policy, 80, seed);
    EXPECT_GE(late, Duration::milliseconds(22'500));
    EXPECT_LE(late, Duration::milliseconds(37'500));
    waits.insert(second.count_nanoseconds());
  }
  EXPECT_GT(waits.size(), 190U);
}

TEST(RestartBudget, SeedsGangsThatFailTogetherDifferently) {
  const JobUuid job{};
  EXPECT_NE(jitter_seed(job, MeshId(0), GangId(0), 1), jitter_seed(job, MeshId(0), GangId(1), 1));
  EXPECT_NE(jitter_seed(job, MeshId(0), GangId(0), 1), jitter_seed(job, MeshId(0), GangId(0), 2));
}

}  // namespace
}  // namespace monarch
