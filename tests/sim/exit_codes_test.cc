#include "tests/sim/exit_codes.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

namespace monarch::sim {
namespace {

Verdict verdict_of(CauseKind kind, int code, RankEnd end = {}) {
  Verdict verdict;
  verdict.cause.kind = kind;
  verdict.cause.end = std::move(end);
  verdict.exit_code = code;
  return verdict;
}

RankEnd end_of(EndKind kind, std::int32_t value) {
  RankEnd end;
  end.kind = kind;
  end.value = value;
  return end;
}

TEST(ExitCodes, AreThoseOfTheRankThatIsTheCause) {
  EXPECT_TRUE(exit_code_fits(verdict_of(CauseKind::kRank, 7, end_of(EndKind::kExited, 7))));
  EXPECT_TRUE(exit_code_fits(verdict_of(CauseKind::kRank, 128 + SIGSEGV, end_of(EndKind::kSignaled, SIGSEGV))));
  EXPECT_FALSE(exit_code_fits(verdict_of(CauseKind::kRank, 1, end_of(EndKind::kExited, 7))));
}

// Another host may have what this one lacked.
TEST(ExitCodes, OfARankThatItsHostCouldNotStartMayAskForAnotherTry) {
  EXPECT_TRUE(exit_code_fits(verdict_of(CauseKind::kRank, 92, end_of(EndKind::kNotExecuted, ENFILE))));
  EXPECT_TRUE(exit_code_fits(verdict_of(CauseKind::kRank, 126, end_of(EndKind::kNotExecuted, EMFILE))));
  EXPECT_FALSE(exit_code_fits(verdict_of(CauseKind::kRank, 92, end_of(EndKind::kNotExecuted, EAGAIN))));
  EXPECT_FALSE(exit_code_fits(verdict_of(CauseKind::kRank, 92, end_of(EndKind::kNotExecuted, ENOENT))));
  EXPECT_FALSE(exit_code_fits(verdict_of(CauseKind::kRank, 92, end_of(EndKind::kExited, 7))));
}

// It was stopped, and has no end of its own.
TEST(ExitCodes, OfARankThatMadeNoProgressAreOne) {
  Verdict hung = verdict_of(CauseKind::kRank, 1);
  hung.cause.summary = "made no progress: not ready within start_timeout (23s): waiting for m0/2@v1";
  EXPECT_TRUE(exit_code_fits(hung));
  hung.exit_code = 70;
  EXPECT_FALSE(exit_code_fits(hung));
  EXPECT_FALSE(exit_code_fits(verdict_of(CauseKind::kRank, 1))) << "neither an end nor a hang";
}

}  // namespace
}  // namespace monarch::sim
