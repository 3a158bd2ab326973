#include "transport/loop/loop_thread.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "tests/transport/loop/failing_threads.h"
#include "tests/transport/loop/loop_fixture.h"

namespace monarch {
namespace {

// Answers each order with its double, and with -1 when it ends.
class Doubler {
 public:
  Doubler(EventLoop& loop, Inbox<int>& orders, Inbox<int>& answers) : loop_(loop), orders_(orders), answers_(answers) {}
  Doubler(const Doubler&) = delete;
  Doubler& operator=(const Doubler&) = delete;
  ~Doubler() { EXPECT_TRUE(answers_.put(-1)); }

  void run() { loop_.run(); }
  void take_orders() {
    for (const int order : orders_.take_all()) EXPECT_TRUE(answers_.put(2 * order));
  }

 private:
  EventLoop& loop_;
  Inbox<int>& orders_;
  Inbox<int>& answers_;
};

class LoopThreadTest : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    auto answers = WatchedInbox<int>::create(loop(), 1'000, [this](int answer) { answers_.push_back(answer); });
    ASSERT_TRUE(answers.ok());
    inbox_ = std::move(*answers);
  }

  Result<std::unique_ptr<LoopThread<int>>> start() {
    return LoopThread<int>::start(
        kCapacity, [to = &inbox_->inbox()](EventLoop& loop, Inbox<int>& orders) { return Doubler(loop, orders, *to); });
  }

  static constexpr std::size_t kCapacity = 100;
  std::unique_ptr<WatchedInbox<int>> inbox_;
  std::vector<int> answers_;
};

TEST_F(LoopThreadTest, TakesOrdersAndAnswersInTheirOrder) {
  const auto thread = start();
  ASSERT_TRUE(thread.ok()) << thread.error().message;
  ASSERT_TRUE((*thread)->put(1));
  EXPECT_TRUE(run_until([&] { return answers_ == std::vector{2}; }));
  ASSERT_TRUE((*thread)->put(2));
  ASSERT_TRUE((*thread)->put(3));
  EXPECT_TRUE(run_until([&] { return answers_ == std::vector{2, 4, 6}; }));
}

TEST_F(LoopThreadTest, EndsAfterWhatWasPutBeforeAndIsJoined) {
  for (int round = 0; round < 50; ++round) {
    auto thread = start();
    ASSERT_TRUE(thread.ok()) << thread.error().message;
    for (const int order : {1, 2, 3}) ASSERT_TRUE((*thread)->put(order));
    thread->reset();
    EXPECT_EQ(inbox_->inbox().take_all(), (std::vector{2, 4, 6, -1})) << "round " << round;
  }
}

TEST_F(LoopThreadTest, MakesUsesAndDestroysItsBodyInItsThread) {
  struct Body {
    ~Body() { seen.push_back(std::this_thread::get_id()); }
    void run() {
      seen.push_back(std::this_thread::get_id());
      loop.run();
    }
    void take_orders() {}
    EventLoop& loop;
    std::vector<std::thread::id>& seen;
  };
  std::vector<std::thread::id> seen;  // read once it is joined
  auto thread = LoopThread<int>::start(1, [&seen](EventLoop& its_loop, Inbox<int>&) {
    seen.push_back(std::this_thread::get_id());
    return Body{its_loop, seen};
  });
  ASSERT_TRUE(thread.ok()) << thread.error().message;
  thread->reset();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_NE(seen[0], std::this_thread::get_id());
  EXPECT_EQ(seen, (std::vector(3, seen[0])));
}

TEST_F(LoopThreadTest, RefusesWhatItHasNoRoomForAndStillEnds) {
  std::promise<void> go_on;
  auto thread = LoopThread<int>::start(
      2, [to = &inbox_->inbox(), wait = go_on.get_future()](EventLoop& its_loop, Inbox<int>& orders) mutable {
        EXPECT_EQ(wait.wait_for(std::chrono::seconds(10)), std::future_status::ready);
        return Doubler(its_loop, orders, *to);
      });
  ASSERT_TRUE(thread.ok()) << thread.error().message;
  EXPECT_TRUE((*thread)->put(1));
  EXPECT_TRUE((*thread)->put(2));
  EXPECT_FALSE((*thread)->put(3));
  go_on.set_value();
  thread->reset();
  EXPECT_EQ(inbox_->inbox().take_all(), (std::vector{2, 4, -1}));
}

TEST_F(LoopThreadTest, SaysWhyItCouldNotBeStarted) {
  Inbox<int>& answers = inbox_->inbox();
  const auto begin = [&answers] {
    return LoopThread<int>::start(
        1, [&answers](EventLoop& its_loop, Inbox<int>& orders) { return Doubler(its_loop, orders, answers); });
  };
  {
    const NoDescriptors none;
    EXPECT_FALSE(begin().ok());
  }
  {
    const NoStacks none;
    const auto thread = begin();
    ASSERT_FALSE(thread.ok());
    EXPECT_EQ(thread.error().code, ErrorCode::kBusy);
  }
  EXPECT_TRUE(answers.take_all().empty());
}

}  // namespace
}  // namespace monarch
