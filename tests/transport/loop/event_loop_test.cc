#include "transport/loop/event_loop.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/transport/loop/loop_fixture.h"

namespace monarch {
namespace {

class Loop : public LoopTest {
 protected:
  // Readable from the start.
  static UniqueFd ready_descriptor() { return UniqueFd(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)); }
};

TEST_F(Loop, TellsReadableWritableAndHangupApart) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd near(ends[0]);
  UniqueFd far(ends[1]);
  std::vector<Readiness> seen;
  const auto watch = loop().watch(near.get(), Interest::kRead, [&](Readiness r) { seen.push_back(r); });
  ASSERT_TRUE(watch.ok());
  loop().turn();
  EXPECT_TRUE(seen.empty());
  loop().change(*watch, Interest::kReadWrite);
  loop().turn();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_TRUE(seen[0].writable && !seen[0].readable && !seen[0].hangup);
  loop().change(*watch, Interest::kRead);
  ASSERT_EQ(::write(far.get(), "x", 1), 1);
  loop().turn();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_TRUE(seen[1].readable && !seen[1].writable && !seen[1].hangup);
  far.reset();
  loop().change(*watch, Interest::kNone);
  loop().turn();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_TRUE(seen[2].hangup);
  loop().forget(*watch);
  loop().turn();
  EXPECT_EQ(seen.size(), 3U);
}

TEST_F(Loop, DoesNotCallAWatchThatAnotherHandlerOfTheTurnForgot) {
  const UniqueFd first = ready_descriptor();
  const UniqueFd second = ready_descriptor();
  std::array<WatchId, 2> watches{};
  int calls = 0;
  // Whichever comes first forgets the other.
  for (std::size_t i = 0; i < 2; ++i) {
    const auto watch = loop().watch(i == 0 ? first.get() : second.get(), Interest::kRead, [&, i](Readiness) {
      ++calls;
      loop().forget(watches[1 - i]);
    });
    ASSERT_TRUE(watch.ok());
    watches[i] = *watch;
  }
  loop().turn();
  EXPECT_EQ(calls, 1);
}

TEST_F(Loop, AHandlerMayForgetItselfAndStillUseWhatItCaptured) {
  const UniqueFd ready = ready_descriptor();
  WatchId watch = 0;
  std::string seen;
  const auto made = loop().watch(ready.get(), Interest::kRead,
                                 [&, text = std::string("a captured string too long for any small buffer")](Readiness) {
                                   loop().forget(watch);
                                   seen = text;
                                 });
  ASSERT_TRUE(made.ok());
  watch = *made;
  loop().turn();
  loop().turn();
  EXPECT_EQ(seen, "a captured string too long for any small buffer");
}

TEST_F(Loop, AHandlerKeepsItsStateFromCallToCall) {
  const UniqueFd ready = ready_descriptor();
  int last = 0;
  ASSERT_TRUE(
      loop().watch(ready.get(), Interest::kRead, [&last, count = 0](Readiness) mutable { last = ++count; }).ok());
  for (int i = 0; i < 3; ++i) loop().turn();
  EXPECT_EQ(last, 3);
}

TEST_F(Loop, AHandlerMayReplaceItsWatchByOneOfTheSameDescriptorNumber) {
  UniqueFd ready = ready_descriptor();
  const int number = ready.get();
  WatchId watch = 0;
  int old_calls = 0;
  int new_calls = 0;
  const auto made = loop().watch(number, Interest::kRead, [&](Readiness) {
    ++old_calls;
    loop().forget(watch);
    ready.reset();
    ready = ready_descriptor();
    ASSERT_EQ(ready.get(), number);
    ASSERT_TRUE(loop().watch(number, Interest::kRead, [&](Readiness) { ++new_calls; }).ok());
  });
  ASSERT_TRUE(made.ok());
  watch = *made;
  loop().turn();
  EXPECT_EQ(old_calls, 1);
  EXPECT_EQ(new_calls, 0);
  loop().turn();
  EXPECT_EQ(old_calls, 1);
  EXPECT_EQ(new_calls, 1);
}

TEST_F(Loop, ServesEachOfManyReadyDescriptors) {
  constexpr std::size_t kMany = 300;  // more than one turn takes
  std::vector<UniqueFd> descriptors;
  std::vector<int> calls(kMany);
  for (std::size_t i = 0; i < kMany; ++i) {
    descriptors.push_back(ready_descriptor());
    ASSERT_TRUE(descriptors.back().valid());
    ASSERT_TRUE(loop().watch(descriptors.back().get(), Interest::kRead, [&calls, i](Readiness) { ++calls[i]; }).ok());
  }
  // All stay ready, and none is starved by the others.
  for (int i = 0; i < 10; ++i) loop().turn();
  for (std::size_t i = 0; i < kMany; ++i) EXPECT_GE(calls[i], 1) << i;
}

TEST_F(Loop, RefusesADescriptorThatCannotBeWatchedOrIsAlready) {
  const UniqueFd ready = ready_descriptor();
  ASSERT_TRUE(loop().watch(ready.get(), Interest::kRead, [](Readiness) {}).ok());
  EXPECT_FALSE(loop().watch(ready.get(), Interest::kRead, [](Readiness) {}).ok());
  EXPECT_FALSE(loop().watch(-1, Interest::kRead, [](Readiness) {}).ok());
  EXPECT_FALSE(loop().watch(1 << 20, Interest::kRead, [](Readiness) {}).ok());
}

TEST_F(Loop, ForgettingTwiceIsAllowed) {
  const UniqueFd ready = ready_descriptor();
  const auto watch = loop().watch(ready.get(), Interest::kRead, [](Readiness) {});
  ASSERT_TRUE(watch.ok());
  loop().forget(*watch);
  loop().forget(*watch);
}

TEST_F(Loop, StopsTheProcessThatClosedADescriptorBeforeItForgotIt) {
  UniqueFd ready = ready_descriptor();
  const auto watch = loop().watch(ready.get(), Interest::kRead, [](Readiness) {});
  ASSERT_TRUE(watch.ok());
  ready.reset();
  EXPECT_DEATH(loop().forget(*watch), "epoll_ctl");
}

TEST_F(Loop, RunsTimersInTheOrderOfTheirInstantsThenOfTheirMaking) {
  std::string order;
  const Instant now = boot_now();
  loop().at(now - Duration::milliseconds(1), [&] { order += 'c'; });
  loop().at(now - Duration::milliseconds(3), [&] { order += 'a'; });
  loop().at(now - Duration::milliseconds(1), [&] { order += 'd'; });
  loop().at(now - Duration::milliseconds(2), [&] { order += 'b'; });
  loop().at(now + Duration::seconds(100), [&] { order += 'x'; });
  loop().at(Instant::never(), [&] { order += 'y'; });
  loop().turn();
  EXPECT_EQ(order, "abcd");
}

TEST_F(Loop, RunsATimerNeitherEarlyNorTwice) {
  const Instant due = boot_now() + Duration::milliseconds(5);
  int runs = 0;
  Instant ran_at;
  loop().at(due, [&] {
    ++runs;
    ran_at = boot_now();
  });
  EXPECT_EQ(loop().next_due(), due);
  ASSERT_TRUE(run_until([&] { return runs > 0; }));
  EXPECT_GE(ran_at, due);
  loop().turn();
  EXPECT_EQ(runs, 1);
}

TEST_F(Loop, ACancelledTimerDoesNotRunAlsoWhenItsTurnHasCome) {
  const Instant past = boot_now() - Duration::milliseconds(1);
  int runs = 0;
  TimerId second = 0;
  const TimerId first = loop().at(past, [&] {
    ++runs;
    loop().cancel(second);
  });
  second = loop().at(past, [&] { runs += 100; });
  const TimerId third = loop().at(past, [&] { runs += 1000; });
  loop().cancel(third);
  loop().turn();
  EXPECT_EQ(runs, 1);
  loop().cancel(first);  // it ran: allowed
  EXPECT_EQ(loop().next_due(), Instant::never());
}

TEST_F(Loop, ATimerThatSetsItselfForNowLetsTheTurnEnd) {
  int runs = 0;
  std::function<void()> again = [&] {
    ++runs;
    loop().at(loop().now(), again);
  };
  loop().at(boot_now(), again);
  for (int turn = 1; turn <= 3; ++turn) {
    loop().turn();
    EXPECT_EQ(runs, turn);
  }
}

TEST_F(Loop, ADeferredCallRunsAfterTheTimersAndOnesItDefersInTheNextTurn) {
  std::string order;
  loop().defer([&] {
    order += 'd';
    loop().defer([&] { order += 'e'; });
  });
  loop().at(boot_now(), [&] { order += 't'; });
  loop().turn();
  EXPECT_EQ(order, "td");
  EXPECT_EQ(loop().next_due(), loop().now());
  loop().run_once();
  EXPECT_EQ(order, "tde");
  EXPECT_EQ(loop().next_due(), Instant::never());
}

TEST_F(Loop, WithoutTimersIsNeverDue) {
  EXPECT_EQ(loop().next_due(), Instant::never());
  loop().at(Instant::never(), [] {});
  EXPECT_EQ(loop().next_due(), Instant::never());
  EXPECT_EQ(EventLoop::wait_milliseconds(boot_now(), Instant::never()), -1);
}

TEST_F(Loop, WaitsAreRoundedUpAndBounded) {
  const Instant now = Instant::since_boot(Duration::seconds(1));
  EXPECT_EQ(EventLoop::wait_milliseconds(now, now), 0);
  EXPECT_EQ(EventLoop::wait_milliseconds(now, now - Duration::seconds(1)), 0);
  EXPECT_EQ(EventLoop::wait_milliseconds(now, now + Duration::nanoseconds(1)), 1);
  EXPECT_EQ(EventLoop::wait_milliseconds(now, now + Duration::milliseconds(1)), 1);
  EXPECT_EQ(EventLoop::wait_milliseconds(now, now + Duration::microseconds(1001)), 2);
  EXPECT_EQ(EventLoop::wait_milliseconds(now, now + Duration::seconds(40'000'000)), 2'147'483'647);
}

// Whoever waits on the loop's descriptor for ever is woken by a timer too: that of epoll_wait has milliseconds, and
// stands still while the machine is suspended.
TEST_F(Loop, ItsDescriptorGetsReadableWhenATimerIsDue) {
  int runs = 0;
  loop().at(boot_now() + Duration::milliseconds(5), [&] { ++runs; });
  loop().at(boot_now() + Duration::milliseconds(2), [&] { ++runs; });
  for (int wanted = 1; wanted <= 2; ++wanted) {
    pollfd poll{.fd = loop().descriptor(), .events = POLLIN, .revents = 0};
    while (runs < wanted) {
      ASSERT_EQ(::poll(&poll, 1, 10'000), 1);
      loop().turn();
    }
  }
  pollfd poll{.fd = loop().descriptor(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&poll, 1, 0), 0);
}

TEST_F(Loop, NotesEachEdgeOnceAndBeforeAnyHandler) {
  const UniqueFd edge(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const UniqueFd plain = ready_descriptor();
  std::string order;
  ASSERT_TRUE(loop().watch(plain.get(), Interest::kRead, [&](Readiness) { order += 'p'; }).ok());
  const auto watch = loop().watch_edges(edge.get(), [&] { order += 'e'; });
  ASSERT_TRUE(watch.ok());
  const auto signal = [&] { ASSERT_EQ(::eventfd_write(edge.get(), 1), 0); };
  signal();
  EXPECT_EQ(loop().collect(-1), EventLoop::Collected::kAll);
  EXPECT_EQ(order, "e");
  loop().finish_turn();
  EXPECT_EQ(order, "ep");
  loop().turn();
  EXPECT_EQ(order, "epp") << "it is as readable as it was";
  signal();
  loop().turn();
  EXPECT_EQ(order, "eppep");
  signal();
  loop().forget(*watch);
  loop().turn();
  EXPECT_EQ(order, "eppepp");
}

TEST_F(Loop, SaysWhetherItCollectedAllThatWasReady) {
  EXPECT_EQ(loop().collect(0), EventLoop::Collected::kNothing);
  loop().finish_turn();
  constexpr std::size_t kMany = 300;  // more than one turn takes
  std::vector<UniqueFd> descriptors;
  int calls = 0;
  for (std::size_t i = 0; i < kMany; ++i) {
    descriptors.push_back(ready_descriptor());
    ASSERT_TRUE(loop().watch(descriptors.back().get(), Interest::kRead, [&](Readiness) { ++calls; }).ok());
    if (i > 0) continue;
    EXPECT_EQ(loop().collect(0), EventLoop::Collected::kAll);
    EXPECT_EQ(calls, 0);
    loop().finish_turn();
    EXPECT_EQ(calls, 1);
  }
  EXPECT_EQ(loop().collect(0), EventLoop::Collected::kPart);
  loop().finish_turn();
  EXPECT_LT(calls, 300);
}

TEST_F(Loop, TimersBeforeTheBootAreDueAtOnce) {
  int runs = 0;
  loop().at(Instant(), [&] { ++runs; });
  loop().at(Instant() - Duration::seconds(5), [&] { ++runs; });
  loop().run_once();
  EXPECT_EQ(runs, 2);
}

TEST_F(Loop, StopsWhenAHandlerSaysSo) {
  int turns = 0;
  std::function<void()> tick = [&] {
    if (++turns == 3) loop().stop();
    loop().at(loop().now(), tick);
  };
  loop().at(boot_now(), tick);
  loop().run();
  EXPECT_TRUE(loop().stopped());
  EXPECT_EQ(turns, 3);
}

}  // namespace
}  // namespace monarch
