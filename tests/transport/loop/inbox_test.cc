#include "transport/loop/inbox.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/transport/loop/failing_threads.h"
#include "tests/transport/loop/loop_fixture.h"

namespace monarch {
namespace {

bool readable(int fd) {
  pollfd poll{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, 0) == 1;
}

TEST(Inbox, GivesAllValuesInOrderAndIsReadableOnlyWhileSomeWait) {
  const auto inbox = Inbox<int>::create(10);
  ASSERT_TRUE(inbox.ok());
  EXPECT_FALSE(readable((*inbox)->descriptor()));
  EXPECT_TRUE((*inbox)->take_all().empty());
  ASSERT_TRUE((*inbox)->put(1));
  ASSERT_TRUE((*inbox)->put(2));
  EXPECT_TRUE(readable((*inbox)->descriptor()));
  EXPECT_EQ((*inbox)->take_all(), (std::vector{1, 2}));
  EXPECT_FALSE(readable((*inbox)->descriptor()));
  ASSERT_TRUE((*inbox)->put(3));
  EXPECT_TRUE(readable((*inbox)->descriptor()));
}

TEST(Inbox, RefusesWhatDoesNotFitAndTakesAgainOnceEmptied) {
  const auto inbox = Inbox<int>::create(2);
  ASSERT_TRUE(inbox.ok());
  EXPECT_TRUE((*inbox)->put(1));
  EXPECT_TRUE((*inbox)->put(2));
  EXPECT_FALSE((*inbox)->put(3));
  EXPECT_EQ((*inbox)->take_all(), (std::vector{1, 2}));
  EXPECT_TRUE((*inbox)->put(3));
}

TEST(Inbox, CarriesValuesThatCannotBeCopied) {
  const auto inbox = Inbox<std::unique_ptr<int>>::create(1);
  ASSERT_TRUE(inbox.ok());
  ASSERT_TRUE((*inbox)->put(std::make_unique<int>(7)));
  EXPECT_EQ(*(*inbox)->take_all().at(0), 7);
}

class InboxOnLoop : public LoopTest {};

// Every value arrives, each thread's in its order, and no wake-up is lost however puts and takes fall together.
TEST_F(InboxOnLoop, LosesNothingBetweenManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 20'000;
  const auto made = Inbox<std::pair<int, int>>::create(64);
  ASSERT_TRUE(made.ok());
  Inbox<std::pair<int, int>>& inbox = **made;
  std::vector<int> next(kThreads);
  int taken = 0;
  ASSERT_TRUE(loop()
                  .watch(inbox.descriptor(), Interest::kRead,
                         [&](Readiness) {
                           for (const auto& [thread, value] : inbox.take_all()) {
                             EXPECT_EQ(value, next[static_cast<std::size_t>(thread)]++);
                             ++taken;
                           }
                         })
                  .ok());
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&inbox, thread] {
      for (int i = 0; i < kEach;) {
        if (inbox.put({thread, i})) {
          ++i;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  EXPECT_TRUE(run_until([&] { return taken == kThreads * kEach; }, Duration::seconds(60)));
  for (std::thread& thread : threads) thread.join();
}

class WatchedInboxTest : public LoopTest {
 protected:
  std::unique_ptr<WatchedInbox<int>> make(std::function<void(int)> take, std::function<void()> taken = {}) {
    auto inbox = WatchedInbox<int>::create(loop(), 10, std::move(take), std::move(taken));
    EXPECT_TRUE(inbox.ok());
    return std::move(*inbox);
  }
};

TEST_F(WatchedInboxTest, GivesItsLoopEachValueInOrderAndSaysWhenThoseOfATurnAreTaken) {
  std::vector<int> seen;
  const auto inbox = make([&](int value) { seen.push_back(value); }, [&] { seen.push_back(0); });
  ASSERT_TRUE(inbox->inbox().put(1));
  ASSERT_TRUE(inbox->inbox().put(2));
  EXPECT_TRUE(seen.empty());
  loop().turn();
  ASSERT_TRUE(inbox->inbox().put(3));
  loop().turn();
  loop().turn();
  EXPECT_EQ(seen, (std::vector{1, 2, 0, 3, 0}));
}

TEST_F(WatchedInboxTest, IsForgottenByTheLoopWhenItEnds) {
  int taken = 0;
  auto inbox = make([&](int) { ++taken; });
  ASSERT_TRUE(inbox->inbox().put(1));
  const UniqueFd copy(::dup(inbox->inbox().descriptor()));  // the kernel forgets what has no descriptor left
  inbox.reset();
  loop().turn();
  EXPECT_EQ(taken, 0);
}

TEST_F(WatchedInboxTest, MayBeEndedByItsHandlerAndGivesTheRestOfTheTurnAllTheSame) {
  std::vector<int> seen;
  std::unique_ptr<WatchedInbox<int>> inbox;
  inbox = make([&](int value) {
    inbox.reset();
    seen.push_back(value);
  });
  ASSERT_TRUE(inbox->inbox().put(1));
  ASSERT_TRUE(inbox->inbox().put(2));
  loop().turn();
  EXPECT_EQ(seen, (std::vector{1, 2}));
}

TEST_F(WatchedInboxTest, SaysWhyItCouldNotBeMade) {
  EventLoop& its_loop = loop();
  const NoDescriptors none;
  EXPECT_FALSE(WatchedInbox<int>::create(its_loop, 1, [](int) {}).ok());
}

}  // namespace
}  // namespace monarch
