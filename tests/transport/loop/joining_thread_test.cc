#include "transport/loop/joining_thread.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <future>
#include <memory>

#include "tests/transport/loop/failing_threads.h"

namespace monarch {
namespace {

constexpr int kPatience = 10'000;  // milliseconds

// Whether it was told to end.
bool wait_for_stop(int stop) {
  pollfd poll{.fd = stop, .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, kPatience) == 1;
}

TEST(JoiningThread, TellsItsWorkToEndAndWaitsForThat) {
  bool stopped = false;  // read once it is joined
  auto thread = JoiningThread::start([&stopped](int stop) { stopped = wait_for_stop(stop); });
  ASSERT_TRUE(thread.ok()) << thread.error().message;
  thread->reset();
  EXPECT_TRUE(stopped);
}

TEST(JoiningThread, CanBeToldToEndBeforeItIsJoined) {
  std::promise<void> end;
  auto thread = JoiningThread::start([&end](int stop) {
    if (wait_for_stop(stop)) end.set_value();
  });
  ASSERT_TRUE(thread.ok()) << thread.error().message;
  (*thread)->begin_stop();
  (*thread)->begin_stop();
  EXPECT_EQ(end.get_future().wait_for(std::chrono::milliseconds(kPatience)), std::future_status::ready);
}

TEST(JoiningThread, OwnsWhatItsWorkIsGivenUntilTheEnd) {
  auto given = std::make_unique<std::shared_ptr<int>>(std::make_shared<int>(7));
  const std::weak_ptr<int> seen = *given;
  auto thread = JoiningThread::start([given = std::move(given)](int stop) { (void)wait_for_stop(stop); });
  ASSERT_TRUE(thread.ok()) << thread.error().message;
  EXPECT_FALSE(seen.expired());
  thread->reset();
  EXPECT_TRUE(seen.expired());
}

TEST(JoiningThread, SaysWhyItCouldNotBeStarted) {
  bool ran = false;
  const auto work = [&ran](int) { ran = true; };
  {
    const NoDescriptors none;
    const auto thread = JoiningThread::start(work);
    ASSERT_FALSE(thread.ok());
    EXPECT_TRUE(thread.error().message.starts_with("eventfd: ")) << thread.error().message;
  }
  {
    const NoStacks none;
    const auto thread = JoiningThread::start(work);
    ASSERT_FALSE(thread.ok());
    EXPECT_EQ(thread.error().code, ErrorCode::kBusy);
    EXPECT_TRUE(thread.error().message.starts_with("starting a thread: ")) << thread.error().message;
  }
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace monarch
