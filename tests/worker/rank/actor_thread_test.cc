// An actor's thread and its helpers; what it runs waits for the test, which never waits for a time.

#include "worker/rank/actor_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "transport/base/sanitizers.h"
#include "worker/rank/deliveries.h"
#include "worker/rank/stack_watch.h"

namespace monarch {
namespace {

// What runs, and what may end.
class Stage {
 public:
  void run(std::uint64_t delivery) {
    std::unique_lock lock(mutex_);
    begun_.push_back(delivery);
    changed_.notify_all();
    changed_.wait(lock, [&] { return may_end_[delivery]; });
  }
  void end(std::uint64_t delivery) {
    const std::lock_guard lock(mutex_);
    may_end_[delivery] = true;
    changed_.notify_all();
  }
  // Once so many have begun.
  std::vector<std::uint64_t> begun(std::size_t so_many) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.size() >= so_many; });
    return begun_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> begun_;
  std::map<std::uint64_t, bool> may_end_;
};

Stage* stage = nullptr;

void run_on_stage(void* /*actor*/, monarch_bytes_v1, const monarch_host_v1*, monarch_delivery_v1* delivery) {
  stage->run(delivery->id);
}

class ActorThreadTest : public ::testing::Test {
 protected:
  ActorThreadTest() {
    stage = &stage_;
    auto made = ActorThread::make(class_, host_, place_);
    EXPECT_TRUE(made.ok());
    actor_ = std::move(*made);
  }
  void put(const char* endpoint, std::uint64_t number) {
    monarch_delivery_v1& delivery = deliveries_[number];
    delivery.id = number;
    actor_->put({.endpoint = actor_->find(endpoint), .arguments = {}, .delivery = &delivery});
  }

  static constexpr monarch_endpoint_v1 kEndpoints[] = {{.struct_size = sizeof(monarch_endpoint_v1),
                                                        .at_most = 0,
                                                        .name = "serial",
                                                        .signature = "*",
                                                        .invoke = &run_on_stage},
                                                       {.struct_size = sizeof(monarch_endpoint_v1),
                                                        .at_most = 2,
                                                        .name = "two",
                                                        .signature = "*",
                                                        .invoke = &run_on_stage},
                                                       {.struct_size = sizeof(monarch_endpoint_v1),
                                                        .at_most = 1,
                                                        .name = "one",
                                                        .signature = "*",
                                                        .invoke = &run_on_stage}};
  const monarch_class_v1 class_{
      .struct_size = sizeof(monarch_class_v1),
      .endpoint_count = 3,
      .name = "C",
      .endpoints = kEndpoints,
      .create = [](const monarch_host_v1*, const monarch_place_v1*, char*, std::size_t) -> void* { return stage; },
      .destroy = [](void*) {}};
  const monarch_host_v1 host_{};
  const monarch_place_v1 place_{};
  std::map<std::uint64_t, monarch_delivery_v1> deliveries_;
  Stage stage_;
  std::unique_ptr<ActorThread> actor_;
};

TEST_F(ActorThreadTest, RunsWhatIsConcurrentBesideAllOthers) {
  put("serial", 1);
  put("serial", 2);
  EXPECT_EQ(stage_.begun(1), (std::vector<std::uint64_t>{1}));
  put("two", 3);  // behind a serial one that waits
  EXPECT_EQ(stage_.begun(2).back(), 3U);
  put("two", 4);
  EXPECT_EQ(stage_.begun(3).back(), 4U);
  put("two", 5);  // waits for its own
  put("one", 6);  // and nobody else for that
  EXPECT_EQ(stage_.begun(4).back(), 6U);
  stage_.end(3);
  EXPECT_EQ(stage_.begun(5).back(), 5U);
  stage_.end(1);
  EXPECT_EQ(stage_.begun(6).back(), 2U);
  for (const std::uint64_t delivery : {2U, 4U, 5U, 6U}) stage_.end(delivery);
}

TEST_F(ActorThreadTest, TakesOutWhatHasNotBegun) {
  put("serial", 1);
  put("serial", 2);
  put("one", 3);
  put("one", 4);
  (void)stage_.begun(2);
  EXPECT_FALSE(actor_->take_out(&deliveries_[1]));
  EXPECT_TRUE(actor_->take_out(&deliveries_[2]));
  EXPECT_FALSE(actor_->take_out(&deliveries_[3]));
  EXPECT_TRUE(actor_->take_out(&deliveries_[4]));
  EXPECT_FALSE(actor_->take_out(&deliveries_[4]));
  for (const std::uint64_t delivery : {1U, 3U}) stage_.end(delivery);
}

int dive(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : dive(depth - 1) + frame[0];
}

TEST(StackWatchDeathTest, SaysThatItWasTheStack) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer says it";
  const auto on_a_thread = [](const auto& run) {
    StackWatch::begin();
    std::thread([&] {
      const StackWatch watch("actor a");
      run();
    }).join();
  };
  EXPECT_EXIT(on_a_thread([] { (void)dive(1 << 20); }), testing::KilledBySignal(SIGSEGV),
              "^monarch-rank: the stack of actor a is full: it may have .*iB .ulimit -s.\n$");
  EXPECT_EXIT(on_a_thread([] { (void)::raise(SIGSEGV); }), testing::KilledBySignal(SIGSEGV), "^$");
}

// As in a process that began with a limit of its stack that nothing has room for.
TEST_F(ActorThreadTest, NamesTheLimitThatLeavesItNoThread) {
  pthread_attr_t before;
  ASSERT_EQ(::pthread_getattr_default_np(&before), 0);
  pthread_attr_t large = before;
  ASSERT_EQ(::pthread_attr_setstacksize(&large, std::size_t{1} << 50U), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&large), 0);
  const auto made = ActorThread::make(class_, host_, place_);
  ASSERT_EQ(::pthread_setattr_default_np(&before), 0);
  (void)::pthread_attr_destroy(&before);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message,
            "starting a thread: Resource temporarily unavailable (no room for its stack of 1024TiB: ulimit -s)");
}

}  // namespace
}  // namespace monarch
