// Who reads a door. What the post says here are PostOvers: of one below kNoise a thread waits, the others are for
// nobody and show who reads.

#include "worker/rank/door_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/worker/rank/silent_door.h"
#include "transport/base/clock.h"
#include "worker/rank/actor_thread.h"
#include "worker/rank/calls.h"
#include "worker/rank/deliveries.h"
#include "worker/rank/intake.h"

namespace monarch {
namespace {

constexpr std::uint64_t kNoise = 100;
constexpr std::uint64_t kForLater = 200;  // from here on the handler has it run on the door's own thread
constexpr Duration kPatience = Duration::seconds(20);
constexpr std::chrono::seconds kFuturePatience{20};

class DoorReaderTest : public SilentDoor {
 protected:
  void SetUp() override {
    SilentDoor::SetUp();
    auto started = DoorThread::start(
        door(), {},
        {.came = [](const DoorThread::Connection&) {},
         .heard = [this](const DoorThread::Connection&, DoorClient::Heard& heard) { this->heard(heard); },
         .ended = [this](const DoorThread::Connection&, const std::string&) { ended(); },
         .wanted = [this](std::size_t) { return wanted_.load(); }});
    ASSERT_TRUE(started.ok());
    thread_ = std::move(*started);
    ASSERT_NE(thread_->wait(boot_now() + kPatience), nullptr);
    own_ = reader_of(kNoise);
  }
  void TearDown() override {
    thread_->stop();
    SilentDoor::TearDown();
  }

  // What came over, or its end.
  bool is_over(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    return over_.contains(id);
  }
  void make_over(std::uint64_t id) {
    {
      const std::lock_guard lock(mutex_);
      over_.insert(id);
    }
    thread_->wake_readers(&keys_.at(id));
  }
  struct Waiting {
    std::future<bool> ended;  // whether it is over
    std::thread::id thread;
  };
  // A thread that waits for one.
  Waiting wait_for(std::uint64_t id, Instant until = Instant::never()) {
    std::promise<std::thread::id> here;
    auto thread = here.get_future();
    auto ended = std::async(std::launch::async, [this, id, until, here = std::move(here)]() mutable {
      here.set_value(std::this_thread::get_id());
      EXPECT_TRUE(thread_->read_until(
          &keys_.at(id), [&] { return is_over(id); }, until));
      return is_over(id);
    });
    return {.ended = std::move(ended), .thread = thread.get()};
  }
  // The thread that handles the next one.
  std::thread::id reader_of(std::uint64_t id) {
    say(PostOver{.id = id});
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kFuturePatience, [&] { return !handled_.empty(); }));
    const std::thread::id thread = handled_.front().second;
    handled_.pop_front();
    return thread;
  }
  // Once one of them reads.
  std::thread::id reader_among(const std::vector<std::thread::id>& threads) {
    const Instant until = boot_now() + kPatience;
    while (boot_now() < until) {
      const std::thread::id reads = reader_of(kNoise);
      if (std::ranges::find(threads, reads) != threads.end()) return reads;
    }
    ADD_FAILURE() << "none of them reads";
    return {};
  }

  std::atomic<bool> wanted_{false};
  std::thread::id own_;
  std::vector<std::pair<std::uint64_t, std::thread::id>> later_;  // the door's thread's
  std::unique_ptr<DoorThread> thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int ends_ = 0;

  std::array<char, 8> keys_{};

 private:
  void heard(DoorClient::Heard& heard) {
    const auto over = decode_payload<PostOver>(heard.frame.payload);
    ASSERT_TRUE(over.ok());
    EXPECT_TRUE(thread_->is_here());
    if (over->id >= kForLater) {
      thread_->run([this, id = over->id] { later_.emplace_back(id, std::this_thread::get_id()); });
    }
    if (over->id < kNoise) make_over(over->id);
    const std::lock_guard lock(mutex_);
    handled_.emplace_back(over->id, std::this_thread::get_id());
    changed_.notify_all();
  }
  void ended() {
    {
      const std::lock_guard lock(mutex_);
      ++ends_;
    }
    changed_.notify_all();
    for (std::uint64_t id = 0; id < keys_.size(); ++id) make_over(id);
  }

  std::set<std::uint64_t> over_;
  std::deque<std::pair<std::uint64_t, std::thread::id>> handled_;
};

TEST_F(DoorReaderTest, IsWhoeverWaits) {
  Waiting waiting = wait_for(1);
  EXPECT_EQ(reader_among({waiting.thread}), waiting.thread);
  EXPECT_EQ(reader_of(kNoise), waiting.thread) << "nobody takes it away";
  EXPECT_EQ(reader_of(1), waiting.thread);
  ASSERT_EQ(waiting.ended.wait_for(kFuturePatience), std::future_status::ready);
  EXPECT_TRUE(waiting.ended.get());
}

TEST_F(DoorReaderTest, IsTheDoorsOwnThreadOnceNobodyWaits) {
  for (const bool wanted : {false, true}) {
    Waiting waiting = wait_for(wanted ? 1 : 2);
    (void)reader_among({waiting.thread});
    wanted_ = wanted;
    EXPECT_EQ(reader_of(wanted ? 1 : 2), waiting.thread);
    EXPECT_TRUE(waiting.ended.get());
    EXPECT_EQ(reader_of(kNoise), own_);
  }
}

TEST_F(DoorReaderTest, IsTheDoorsOwnThreadWhileMoreIsWantedThanThat) {
  wanted_ = true;
  Waiting waiting = wait_for(1);
  EXPECT_EQ(reader_of(kNoise), own_);
  EXPECT_EQ(reader_of(1), own_);
  ASSERT_EQ(waiting.ended.wait_for(kFuturePatience), std::future_status::ready);
  Waiting other = wait_for(2);
  EXPECT_EQ(reader_of(kNoise), own_);
  wanted_ = false;
  EXPECT_EQ(reader_among({other.thread}), other.thread);
  EXPECT_EQ(reader_of(2), other.thread);
}

TEST_F(DoorReaderTest, LetsGoWhenItsTimeIsUp) {
  Waiting waiting = wait_for(1, boot_now() + Duration::milliseconds(30));
  ASSERT_EQ(waiting.ended.wait_for(kFuturePatience), std::future_status::ready);
  EXPECT_FALSE(waiting.ended.get());
  EXPECT_EQ(reader_of(kNoise), own_);
}

TEST_F(DoorReaderTest, LetsGoWhenAnotherThreadEndsItsWait) {
  Waiting waiting = wait_for(1);
  (void)reader_among({waiting.thread});
  make_over(1);
  ASSERT_EQ(waiting.ended.wait_for(kFuturePatience), std::future_status::ready);
  EXPECT_EQ(reader_of(kNoise), own_);
}

TEST_F(DoorReaderTest, IsOneOfThreeAndThenAnother) {
  std::array<Waiting, 3> waiting{wait_for(0), wait_for(1), wait_for(2)};
  std::vector<std::thread::id> threads;
  for (const Waiting& one : waiting) threads.push_back(one.thread);
  std::vector<std::size_t> left{0, 1, 2};
  while (!left.empty()) {
    std::vector<std::thread::id> may;
    for (const std::size_t one : left) may.push_back(threads[one]);
    const std::thread::id reads = reader_among(may);
    if (left.size() > 1) {  // who does not read is told
      const auto other = std::ranges::find_if(left, [&](std::size_t one) { return threads[one] != reads; });
      EXPECT_EQ(reader_of(*other), reads);
      EXPECT_EQ(waiting[*other].ended.wait_for(kFuturePatience), std::future_status::ready);
      left.erase(other);
      EXPECT_EQ(reader_of(kNoise), reads);
    }
    const auto reader = std::ranges::find_if(left, [&](std::size_t one) { return threads[one] == reads; });
    EXPECT_EQ(reader_of(*reader), reads);
    EXPECT_EQ(waiting[*reader].ended.wait_for(kFuturePatience), std::future_status::ready);
    left.erase(reader);
  }
  EXPECT_EQ(reader_of(kNoise), own_);
}

TEST_F(DoorReaderTest, HearsTheEndOfTheConnectionAndReadsTheNextOne) {
  Waiting waiting = wait_for(1);
  Waiting other = wait_for(2);
  (void)reader_among({waiting.thread, other.thread});
  end_all();
  for (Waiting* const one : {&waiting, &other}) {
    ASSERT_EQ(one->ended.wait_for(kFuturePatience), std::future_status::ready);
    EXPECT_TRUE(one->ended.get());
  }
  EXPECT_EQ(ends_, 1);
  ASSERT_NE(thread_->wait(boot_now() + kPatience), nullptr);
  EXPECT_EQ(reader_of(kNoise), own_);
}

TEST_F(DoorReaderTest, LetsAStopThrough) {
  Waiting waiting = wait_for(1);
  (void)reader_among({waiting.thread});
  thread_->stop();
  ASSERT_EQ(waiting.ended.wait_for(kFuturePatience), std::future_status::ready);
  EXPECT_EQ(ends_, 1);
}

TEST_F(DoorReaderTest, LeavesToTheDoorsThreadWhatIsForThatInOrder) {
  Waiting waiting = wait_for(1);
  (void)reader_among({waiting.thread});
  for (std::uint64_t id = kForLater; id < kForLater + 3; ++id) EXPECT_EQ(reader_of(id), waiting.thread);
  EXPECT_EQ(reader_of(1), waiting.thread);
  (void)waiting.ended.get();
  EXPECT_EQ(reader_of(kForLater + 3), own_);
  thread_->stop();
  ASSERT_EQ(later_.size(), 4U);
  for (std::size_t i = 0; i < later_.size(); ++i) EXPECT_EQ(later_[i], std::pair(kForLater + i, own_));
}

// ---- a call

struct Answered {
  std::promise<std::thread::id> over;
  std::atomic<bool> is_over{false};
  std::thread::id first;  // that gave the answer
};

class CallReaderTest : public SilentDoor {
 protected:
  void ask(Calls& calls, std::uint32_t flags, Answered& answered) {
    static const monarch_ranks_v1 ranks{.first = 1, .count = 1, .step = 1};
    monarch_call_v1 call{};
    call.struct_size = sizeof call;
    call.flags = flags;
    call.mesh = "work";
    call.actor = "a";
    call.endpoint = "f";
    call.signature = "*";
    call.ranks = &ranks;
    call.ranks_count = 1;
    call.user = &answered;
    call.on_answer = [](void* user, const monarch_answer_v1* answer) {
      auto& told = *static_cast<Answered*>(user);
      if (answer != nullptr) {
        told.first = std::this_thread::get_id();
      } else {
        told.is_over = true;
        told.over.set_value(std::this_thread::get_id());
      }
    };
    (void)calls.call(call);
  }
  void answer(std::uint64_t id) {
    say(PostAnswer{.id = id, .rank = 1, .outcome = {}});
    say(PostOver{.id = id});
  }
};

TEST_F(CallReaderTest, GivesAnswersOnlyToThoseThatMayHaveThemThere) {
  Calls calls(door(), {});
  std::deque<Answered> told;
  std::uint64_t asked = 0;
  const auto ask_another = [&](std::uint32_t flags) {
    ask(calls, flags, told.emplace_back());
    return ++asked;
  };
  const auto answer_of = [&](std::uint64_t id) {
    auto over = told[id - 1].over.get_future();
    answer(id);
    EXPECT_EQ(over.wait_for(kFuturePatience), std::future_status::ready);
    return std::pair(told[id - 1].first, over.get());
  };
  const std::uint64_t awaited = ask_another(MONARCH_CALL_ANY_THREAD);
  std::promise<std::thread::id> here;
  auto waiting = std::async(std::launch::async, [&, first = &told.front()] {
    here.set_value(std::this_thread::get_id());
    EXPECT_TRUE(calls.read_until(
        first, [first] { return first->is_over.load(); }, Instant::never()));
  });
  const std::thread::id waits = here.get_future().get();
  const Instant until = boot_now() + kPatience;
  while (answer_of(ask_another(MONARCH_CALL_ANY_THREAD)).second != waits) ASSERT_LT(boot_now(), until);
  const auto [first, last] = answer_of(ask_another(0));
  EXPECT_EQ(first, last);
  EXPECT_NE(first, waits);
  EXPECT_EQ(answer_of(awaited), std::pair(waits, waits));
  EXPECT_EQ(waiting.wait_for(kFuturePatience), std::future_status::ready);
}

TEST_F(CallReaderTest, IsToldOfADeadlineThatThePostForgets) {
  Calls calls(door(), {});
  ASSERT_TRUE(calls.wait().ok());
  Answered told;
  auto over = told.over.get_future();
  static const monarch_ranks_v1 ranks{.first = 1, .count = 1, .step = 1};
  monarch_call_v1 call{};
  call.struct_size = sizeof call;
  call.flags = MONARCH_CALL_ANY_THREAD;
  call.mesh = call.actor = call.endpoint = call.signature = "a";
  call.ranks = &ranks;
  call.ranks_count = 1;
  call.deadline_ns = 50'000'000;
  call.user = &told;
  static Calls* of = nullptr;
  of = &calls;
  call.on_answer = [](void* user, const monarch_answer_v1* answer) {
    auto& one = *static_cast<Answered*>(user);
    if (answer != nullptr) return;
    one.is_over = true;
    of->wake_readers(user);
    one.over.set_value(std::this_thread::get_id());
  };
  (void)calls.call(call);
  EXPECT_TRUE(calls.read_until(
      &told, [&] { return told.is_over.load(); }, boot_now() + kPatience));
  EXPECT_TRUE(told.is_over);
  EXPECT_NE(over.get(), std::this_thread::get_id());
}

// ---- an actor

struct Act {
  std::promise<std::thread::id> begun;
  std::promise<void> unwanted;
};
Act* act = nullptr;

class ActorReaderTest : public SilentDoor {
 protected:
  void SetUp() override {
    SilentDoor::SetUp();
    act = &act_;
    auto made = ActorThread::make(kOf, host_, place_);
    ASSERT_TRUE(made.ok());
    actor_ = std::move(*made);
    auto started = DoorThread::start(door(), {}, intake_.handlers({}));
    ASSERT_TRUE(started.ok());
    thread_ = std::move(*started);
    actor_->read_at(*thread_);
  }
  void TearDown() override {
    actor_->begin_stop();
    EXPECT_TRUE(actor_->join(kPatience));
    thread_.reset();
    SilentDoor::TearDown();
  }
  void deliver(std::uint64_t number, const std::string& endpoint) {
    say(PostDeliver{.delivery = number, .target = {"a", endpoint, "*"}});
  }

  // Runs until nobody wants it any more.
  static void until_unwanted(void* /*actor*/, monarch_bytes_v1, const monarch_host_v1*, monarch_delivery_v1* delivery) {
    act->begun.set_value(std::this_thread::get_id());
    while (!delivery->unwanted) std::this_thread::yield();
    act->unwanted.set_value();
  }
  static void at_once(void* /*actor*/, monarch_bytes_v1, const monarch_host_v1*, monarch_delivery_v1* delivery) {
    act->begun.set_value(std::this_thread::get_id());
    delivery->of->answer(delivery, {}, std::string_view());
  }
  static constexpr monarch_endpoint_v1 kEndpoints[] = {{sizeof(monarch_endpoint_v1), 0, "long", "*", &until_unwanted},
                                                       {sizeof(monarch_endpoint_v1), 0, "short", "*", &at_once}};
  static constexpr monarch_class_v1 kOf{sizeof(monarch_class_v1),
                                        2,
                                        "A",
                                        kEndpoints,
                                        [](const monarch_host_v1*, const monarch_place_v1*, char*, size_t) -> void* {
                                          static char one = 0;
                                          return &one;
                                        },
                                        [](void*) {}};
  Act act_;
  monarch_host_v1 host_{};
  monarch_place_v1 place_{};
  Deliveries deliveries_;
  std::unique_ptr<ActorThread> actor_;
  Intake intake_{deliveries_, [this](const std::string&) { return actor_.get(); }};
  std::unique_ptr<DoorThread> thread_;
};

TEST_F(ActorReaderTest, RunsWhatItHasReadItself) {
  for (std::uint64_t number = 1; number < 20; ++number) {
    act_ = {};
    deliver(number, "short");
    ASSERT_EQ(act_.begun.get_future().wait_for(kFuturePatience), std::future_status::ready);
  }
}

TEST_F(ActorReaderTest, IsToldWhatIsTakenBackWhileItsThreadIsBusy) {
  deliver(1, "long");
  ASSERT_EQ(act_.begun.get_future().wait_for(kFuturePatience), std::future_status::ready);
  say(PostTakeBack{.delivery = 1});
  EXPECT_EQ(act_.unwanted.get_future().wait_for(kFuturePatience), std::future_status::ready);
}

TEST_F(ActorReaderTest, NeverRunsWhatIsTakenBackWhileItsThreadIsBusy) {
  deliver(1, "long");
  ASSERT_EQ(act_.begun.get_future().wait_for(kFuturePatience), std::future_status::ready);
  act_.begun = {};
  deliver(2, "short");
  say(PostTakeBack{.delivery = 2});
  say(PostTakeBack{.delivery = 1});
  EXPECT_EQ(act_.unwanted.get_future().wait_for(kFuturePatience), std::future_status::ready);
  auto next = act_.begun.get_future();
  deliver(3, "short");
  ASSERT_EQ(next.wait_for(kFuturePatience), std::future_status::ready);  // 2 would have set it, too, and 3 throws then
}

TEST_F(ActorReaderTest, EndsWhileItsThreadReads) {
  deliver(1, "short");
  ASSERT_EQ(act_.begun.get_future().wait_for(kFuturePatience), std::future_status::ready);
  actor_->begin_stop();
  EXPECT_TRUE(actor_->join(kPatience));
}

TEST_F(ActorReaderTest, GoesOnWithTheNextPost) {
  deliver(1, "short");
  ASSERT_EQ(act_.begun.get_future().wait_for(kFuturePatience), std::future_status::ready);
  act_ = {};
  end_all();
  deliver(2, "short");
  ASSERT_EQ(act_.begun.get_future().wait_for(kFuturePatience), std::future_status::ready);
}

}  // namespace
}  // namespace monarch
