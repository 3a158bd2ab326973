#include "cli/follow/signal_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

namespace monarch {

TEST(SignalPolicy, CtrlCStopsThenKillsThenLeaves) {
  SignalPolicy policy(ViewerKind::kOwner);
  const SignalAnswer first = policy.on_signal(SIGINT);
  EXPECT_EQ(first.action, SignalAction::kStop);
  EXPECT_TRUE(first.interrupted);
  EXPECT_EQ(policy.on_signal(SIGINT).action, SignalAction::kKill);
  const SignalAnswer third = policy.on_signal(SIGINT);
  EXPECT_EQ(third.action, SignalAction::kLeave);
  EXPECT_EQ(third.exit_code, 130);
  EXPECT_EQ(policy.on_signal(SIGINT).action, SignalAction::kLeave);
}

TEST(SignalPolicy, TermAndHupStopInOrderWithTheirExitCode) {
  for (const auto& [number, code] : {std::pair{SIGTERM, 143}, std::pair{SIGHUP, 129}}) {
    SignalPolicy policy(ViewerKind::kOwner);
    const SignalAnswer answer = policy.on_signal(number);
    EXPECT_EQ(answer.action, SignalAction::kStop);
    EXPECT_EQ(answer.exit_code, code);
    EXPECT_FALSE(answer.interrupted);
    EXPECT_EQ(policy.on_signal(number).action, SignalAction::kIgnore);
    EXPECT_EQ(policy.on_signal(SIGINT).action, SignalAction::kKill);
  }
}

TEST(SignalPolicy, CtrlCKillsAfterAnotherStop) {
  SignalPolicy policy(ViewerKind::kOwner);
  policy.stop_asked();
  EXPECT_EQ(policy.on_signal(SIGTERM).action, SignalAction::kIgnore);
  EXPECT_EQ(policy.on_signal(SIGINT).action, SignalAction::kKill);
  policy.stop_asked();
  EXPECT_EQ(policy.on_signal(SIGINT).action, SignalAction::kLeave);
}

TEST(SignalPolicy, TheRanksGetTheUsersSignals) {
  for (const int number : {SIGUSR1, SIGUSR2, SIGQUIT, SIGCONT}) {
    SignalPolicy policy(ViewerKind::kOwner);
    EXPECT_EQ(policy.on_signal(number).action, SignalAction::kForward);
    EXPECT_EQ(SignalPolicy(ViewerKind::kWatcher).on_signal(number).action, SignalAction::kIgnore);
  }
}

TEST(SignalPolicy, AWatcherOnlyEverDetaches) {
  SignalPolicy policy(ViewerKind::kWatcher);
  for (const auto& [number, code] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}, std::pair{SIGHUP, 129}}) {
    const SignalAnswer answer = policy.on_signal(number);
    EXPECT_EQ(answer.action, SignalAction::kDetach);
    EXPECT_EQ(answer.exit_code, code);
  }
}

TEST(SignalPolicy, CtrlZIsLeftToTheSystem) {
  for (const ViewerKind kind : {ViewerKind::kOwner, ViewerKind::kWatcher}) {
    const auto taken = SignalPolicy::signals(kind);
    for (const int number : {SIGTSTP, SIGTTIN, SIGTTOU, SIGSTOP}) {
      EXPECT_EQ(std::find(taken.begin(), taken.end(), number), taken.end());
    }
  }
}

}  // namespace monarch
