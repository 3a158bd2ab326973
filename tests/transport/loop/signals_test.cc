#include "transport/loop/signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <set>

#include "tests/transport/loop/loop_fixture.h"

namespace monarch {
namespace {

class Signals : public LoopTest {};

TEST_F(Signals, BecomeReadableEventsThatNameTheirSender) {
  const auto signals = SignalFd::create({SIGUSR1, SIGUSR2});
  ASSERT_TRUE(signals.ok());
  EXPECT_FALSE((*signals)->next().has_value());
  ASSERT_EQ(::kill(::getpid(), SIGUSR2), 0);
  ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
  int ready = 0;
  const auto watch = loop().watch((*signals)->descriptor(), Interest::kRead, [&](Readiness) { ++ready; });
  ASSERT_TRUE(watch.ok());
  ASSERT_TRUE(run_until([&] { return ready > 0; }));
  const auto first = (*signals)->next();
  const auto second = (*signals)->next();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->number, SIGUSR1);
  EXPECT_EQ(first->sender_pid, ::getpid());
  EXPECT_EQ(first->sender_uid, ::getuid());
  EXPECT_EQ(second->number, SIGUSR2);
  EXPECT_FALSE((*signals)->next().has_value());
  loop().forget(*watch);
}

// As nohup(1) and a script's `&` start a program. It is in a process of its own: what a process ignores is for all of
// its threads.
Result<std::unique_ptr<SignalFd>> taken_while_ignored() {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) (void)::signal(number, SIG_IGN);
  return SignalFd::create({SIGHUP, SIGINT, SIGQUIT, SIGTERM});
}

TEST(IgnoredSignals, OfAProcessThatSendsThemAreHeardButForHup) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto signals = taken_while_ignored();
    if (!signals.ok()) ::_exit(1);
    std::set<int> heard;
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) (void)::raise(number);
    while (const auto signal = (*signals)->next()) heard.insert(signal->number);
    ::_exit(heard == std::set<int>{SIGINT, SIGQUIT, SIGTERM} ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(IgnoredSignals, OfATerminalsKeysPassBy) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    (void)::setsid();
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    const int opened = terminal >= 0 && ::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0
                           ? ::open(::ptsname(terminal), O_RDWR)  // without O_NOCTTY: it is this session's from now on
                           : -1;
    if (opened < 0) ::_exit(3);
    const auto signals = taken_while_ignored();
    if (!signals.ok()) ::_exit(1);
    if (::write(terminal, "\x03\x1c", 2) != 2) ::_exit(4);
    (void)::raise(SIGTERM);
    const auto first = (*signals)->next();
    ::_exit(first && first->number == SIGTERM && !(*signals)->next() ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(IgnoredSignals, OfAProcessOfOursAreAllThatAreMeantForRanks) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ignore_what_is_for_ranks();
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGPIPE, SIGXCPU,
                             SIGXFSZ, SIGIO, SIGPWR}) {
      (void)::raise(number);
    }
    for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) (void)::raise(number);
    (void)::raise(SIGTERM);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST(SignalReset, GivesAChildTheDefaultsBack) {
  const auto signals = SignalFd::create({SIGUSR1});
  ASSERT_TRUE(signals.ok());
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  struct sigaction saved {};
  ASSERT_EQ(::sigaction(SIGUSR1, &ignore, &saved), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    reset_signals_in_child();
    (void)::raise(SIGUSR1);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(::sigaction(SIGUSR1, &saved, nullptr), 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGUSR1);
}

TEST(SignalName, IsTheOneThatPeopleKnow) {
  EXPECT_EQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(signal_name(77), "signal 77");
  EXPECT_EQ(signal_name(0), "signal 0");
  EXPECT_EQ(signal_name(-1), "signal -1");
}

TEST(SignalNumber, IsFoundByNameWithAndWithoutPrefixAndByNumber) {
  for (const auto* name : {"TERM", "SIGTERM", "15"}) {
    const auto number = signal_number(name);
    ASSERT_TRUE(number.ok()) << name;
    EXPECT_EQ(*number, SIGTERM);
  }
  EXPECT_EQ(*signal_number("9"), SIGKILL);
  EXPECT_EQ(*signal_number("64"), 64);
}

TEST(SignalNumber, RefusesEverythingElse) {
  for (const auto* name :
       {"", "SIG", "term", "TERMINATE", "0", "-1", "65", "99999999999999999999", "15 ", "EXIT", "\x1b"}) {
    const auto number = signal_number(name);
    ASSERT_FALSE(number.ok()) << name;
    EXPECT_EQ(number.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(number.error().message.find('\x1b'), std::string::npos);
  }
}

TEST(SignalNumber, IsTheInverseOfTheName) {
  for (int number = 1; number < 32; ++number) EXPECT_EQ(*signal_number(signal_name(number)), number);
}

}  // namespace
}  // namespace monarch
