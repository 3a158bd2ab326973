#include "worker/keeper/standstill.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace monarch {
namespace {

ProcessStanding in(char state, std::uint64_t switches = 1) {
  return {.state = state, .tracer = 0, .switches = switches};
}

Instant at(std::int64_t seconds) { return Instant::since_boot(Duration::seconds(seconds)); }

TEST(Standstill, ReadsWhatTheKernelSays) {
  const auto standing = parse_standing(
      "Name:\ta (b) State:\tT\nState:\tD (disk sleep)\nTracerPid:\t4711\nvoluntary_ctxt_switches:\t12\n"
      "nonvoluntary_ctxt_switches:\t30\n");
  ASSERT_TRUE(standing.has_value());
  EXPECT_EQ(standing->state, 'D');
  EXPECT_EQ(standing->tracer, 4711);
  EXPECT_EQ(standing->switches, 42U);
  EXPECT_FALSE(parse_standing("").has_value());
  EXPECT_FALSE(parse_standing("State:").has_value());
  EXPECT_FALSE(parse_standing("State:\t\nPid:\t1").has_value());
}

TEST(Standstill, IsTracedBeforeItIsStoppedAndStoppedBeforeItIsFrozen) {
  StandstillWatch watch;
  EXPECT_EQ(watch.judge(in('S'), false, false, at(1)), Standstill::kNone);
  EXPECT_EQ(watch.judge(in('T'), true, false, at(2)), Standstill::kStopped);
  EXPECT_EQ(watch.judge(in('S'), true, false, at(3)), Standstill::kFrozen);
  ProcessStanding traced = in('t');
  traced.tracer = 9;
  EXPECT_EQ(watch.judge(traced, true, false, at(4)), Standstill::kTraced);
  EXPECT_EQ(watch.judge(traced, false, true, at(5)), Standstill::kNone);
}

TEST(Standstill, WaitsOnlyInOneWaitThatLastsTenSeconds) {
  StandstillWatch watch;
  EXPECT_EQ(watch.judge(in('D', 7), false, false, at(1)), Standstill::kNone);
  EXPECT_EQ(watch.judge(in('D', 7), false, false, at(10)), Standstill::kNone);
  EXPECT_EQ(watch.judge(in('D', 7), false, false, at(11)), Standstill::kWaiting);
  EXPECT_EQ(watch.judge(in('D', 8), false, false, at(12)), Standstill::kNone);  // another wait
  EXPECT_EQ(watch.judge(in('D', 8), false, false, at(22)), Standstill::kWaiting);
  EXPECT_EQ(watch.judge(in('R', 9), false, false, at(23)), Standstill::kNone);
}

TEST(Standstill, SeesAChildOfOursStop) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  ASSERT_GT(child, 0);
  siginfo_t info{};
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED), 0);
  const auto standing = read_standing(child);
  ASSERT_TRUE(standing.has_value());
  EXPECT_EQ(standing->state, 'T');
  EXPECT_EQ(standing->tracer, 0);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED), 0);
}

}  // namespace
}  // namespace monarch
