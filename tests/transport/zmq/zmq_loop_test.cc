#include "transport/zmq/zmq_loop.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/transport/zmq/zmq_lab.h"
#include "transport/base/clock.h"

namespace {
int events_asked = 0;  // how often any socket was asked for its events
}

// In front of libzmq's own.
extern "C" int zmq_getsockopt(void* socket, int option, void* value, std::size_t* size) {
  using Ask = int (*)(void*, int, void*, std::size_t*);
  static const auto ask = reinterpret_cast<Ask>(::dlsym(RTLD_NEXT, "zmq_getsockopt"));
  if (option == ZMQ_EVENTS) ++events_asked;
  return ask(socket, option, value, size);
}

namespace monarch {
namespace {

// Two ends of an inproc pair: what one sends, the other's loop takes.
struct Pair {
  Pair(ZmqContext& context, const std::string& name)
      : near(ZmqSocket::create(context, ZMQ_PAIR).value()), far(ZmqSocket::create(context, ZMQ_PAIR).value()) {
    EXPECT_TRUE(near->bind("inproc://" + name).ok());
    EXPECT_TRUE(far->connect("inproc://" + name).ok());
  }
  void send(int count) {
    for (int i = 0; i < count; ++i) {
      auto frames = one_frame("x");
      EXPECT_TRUE(far->send(frames).ok());
    }
  }
  bool take() {
    std::vector<ZmqFrame> frames;
    return near->receive(frames, 1) == ZmqSocket::Taken::kMessage;
  }
  std::unique_ptr<ZmqSocket> near;
  std::unique_ptr<ZmqSocket> far;
};

struct LoopTest : testing::Test {
  LoopTest() : events(EventLoop::create().value()), loop(*events), context(ZmqContext::create({}).value()) {}
  std::unique_ptr<EventLoop> events;
  ZmqLoop loop;
  std::unique_ptr<ZmqContext> context;
};

using ZmqLoopOf = LoopTest;

TEST_F(ZmqLoopOf, ServesSocketsInTheOrderOfAddingEachWithinABudget) {
  Pair control(*context, "control");
  Pair bulk(*context, "bulk");
  std::string served;
  loop.watch(*control.near, [&] { return control.take() && (served += 'c', true); });
  loop.watch(*bulk.near, [&] { return bulk.take() && (served += 'b', true); });
  bulk.send(100);
  control.send(100);
  loop.turn(boot_now());
  EXPECT_EQ(served, std::string(64, 'c') + std::string(64, 'b'));
  loop.turn(Instant::never());  // what is left is found without a new message
  EXPECT_EQ(served.size(), 200U);
}

TEST_F(ZmqLoopOf, LooksSeldomAtASocketThatIsToBeLookedAtSeldom) {
  Pair busy(*context, "busy");
  Pair quiet(*context, "quiet");
  int told = 0;
  loop.watch(*busy.near, [&] { return busy.take(); });
  loop.watch(
      *quiet.near, [&] { return quiet.take() && (++told, true); }, ZmqLoop::Pace::kSeldom);
  loop.turn(boot_now());
  const Instant looked = events->now();
  quiet.send(1);
  busy.send(1);
  loop.turn(Instant::never());
  if (events->now() < looked + ZmqLoop::kSeldomEvery) {
    EXPECT_EQ(told, 0) << "it was looked at just now";
  }
  for (int turns = 0; told == 0 && turns < 3; ++turns) loop.turn(Instant::never());
  EXPECT_EQ(told, 1) << "without another message";
  EXPECT_GE(events->now(), looked + ZmqLoop::kSeldomEvery);
  quiet.send(1);
  loop.turn(boot_now() + Duration::seconds(10));
  loop.turn(boot_now() + Duration::seconds(10));
  EXPECT_EQ(told, 2) << "it wakes an idle loop";
}

TEST_F(ZmqLoopOf, LooksEachTurnAtASocketWhosePaceBecomesThat) {
  Pair quiet(*context, "quiet");
  int told = 0;
  const ZmqWatchId id = loop.watch(
      *quiet.near, [&] { return quiet.take() && (++told, true); }, ZmqLoop::Pace::kSeldom);
  loop.turn(boot_now());
  loop.set_pace(id, ZmqLoop::Pace::kEachTurn);
  quiet.send(1);
  loop.turn(Instant::never());
  EXPECT_EQ(told, 1) << "in the very next turn, as soon as it came";
}

TEST_F(ZmqLoopOf, TakesMessagesBeforeTimersThatAreDue) {
  Pair pair(*context, "pair");
  std::string order;
  events->at(boot_now(), [&] { order += "timer "; });
  loop.watch(*pair.near, [&] { return pair.take() && (order += "message ", true); });
  pair.send(1);
  loop.turn(boot_now());
  EXPECT_EQ(order, "message timer ");
}

TEST_F(ZmqLoopOf, ReadsTheClockBeforeItsHandlers) {
  Pair pair(*context, "pair");
  const Instant before = boot_now();
  Instant seen;
  loop.watch(*pair.near, [&] {
    seen = events->now();
    return pair.take();
  });
  pair.send(1);
  loop.turn(boot_now());
  EXPECT_GE(seen, before);
}

TEST_F(ZmqLoopOf, WakesForADescriptorOfTheEventLoopAndRunsDeferredCalls) {
  const UniqueFd wake(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  std::string order;
  const auto watch = events->watch(wake.get(), Interest::kRead, [&](Readiness) {
    order += "descriptor ";
    events->defer([&] {
      order += "deferred ";
      events->defer([&] {
        order += "again";
        loop.stop();
      });
    });
    std::uint64_t count = 0;
    EXPECT_EQ(::read(wake.get(), &count, sizeof count), static_cast<ssize_t>(sizeof count));
  });
  ASSERT_TRUE(watch.ok());
  loop.run();
  EXPECT_EQ(order, "descriptor deferred again");
  events->forget(*watch);
}

TEST_F(ZmqLoopOf, RunsATimerWhileNoSocketSpeaks) {
  Pair pair(*context, "pair");
  loop.watch(*pair.near, [&] { return pair.take(); });
  events->at(boot_now() + Duration::milliseconds(5), [&] { loop.stop(); });
  loop.run();
  EXPECT_TRUE(events->stopped());
}

TEST_F(ZmqLoopOf, HandlerMayForgetItselfAndCloseItsSocket) {
  auto pair = std::make_unique<Pair>(*context, "pair");
  Pair other(*context, "other");
  int calls = 0;
  int other_calls = 0;
  ZmqWatchId id = 0;
  id = loop.watch(*pair->near, [&] {
    ++calls;
    loop.forget(id);
    pair.reset();
    return true;
  });
  loop.watch(*other.near, [&] { return other.take() && (++other_calls, true); });
  pair->send(3);
  other.send(1);
  loop.turn(boot_now());
  loop.turn(boot_now());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(other_calls, 1);
}

TEST_F(ZmqLoopOf, HandlerMayForgetAWatchThatIsReadyToo) {
  Pair first(*context, "first");
  Pair second(*context, "second");
  bool second_called = false;
  ZmqWatchId second_id = 0;
  loop.watch(*first.near, [&] {
    loop.forget(second_id);
    return first.take();
  });
  second_id = loop.watch(*second.near, [&] { return second_called = second.take(); });
  first.send(1);
  second.send(1);
  loop.turn(boot_now());
  EXPECT_FALSE(second_called);
}

// A send takes the edge of the descriptor with it where libzmq has not looked for commands for a while (3,000,000 ticks
// of the processor).
TEST_F(ZmqLoopOf, MissesNoMessageThatArrivedDuringASend) {
  Pair pair(*context, "pair");
  int taken = 0;
  loop.watch(*pair.near, [&] { return pair.take() && (++taken, true); });
  loop.turn(boot_now());
  const Instant end = boot_now() + Duration::milliseconds(20);
  for (int sent = 1; boot_now() < end; ++sent) {
    pair.send(1);
    auto frames = one_frame("out");
    ASSERT_TRUE(pair.near->send(frames).ok());
    loop.turn(boot_now() + Duration::seconds(10));
    ASSERT_EQ(taken, sent);
    std::vector<ZmqFrame> out;
    ASSERT_EQ(pair.far->receive(out, 1), ZmqSocket::Taken::kMessage);
  }
}

TEST_F(ZmqLoopOf, MissesNoMessageWhoseEdgeAnotherUseTook) {
  Pair pair(*context, "pair");
  int taken = 0;
  loop.watch(*pair.near, [&] { return pair.take() && (++taken, true); });
  loop.turn(boot_now());
  pair.send(2);
  EXPECT_TRUE(pair.take());  // by its owner, outside of the loop
  loop.turn(boot_now() + Duration::seconds(10));
  EXPECT_EQ(taken, 1);
  pair.send(1);
  EXPECT_TRUE(pair.near->events().readable);
  loop.turn(boot_now() + Duration::seconds(10));
  EXPECT_EQ(taken, 2);
}

TEST_F(ZmqLoopOf, AsksNoSocketThatNobodyUsesAndEachOnceThatSomebodyDoes) {
  constexpr int kSockets = 100;
  constexpr int kTurns = 50;
  std::vector<std::unique_ptr<Pair>> silent;
  for (int i = 0; i < kSockets; ++i) {
    silent.push_back(std::make_unique<Pair>(*context, "silent-" + std::to_string(i)));
    loop.watch(*silent.back()->near, [pair = silent.back().get()] { return pair->take(); });
  }
  Pair pair(*context, "pair");
  loop.watch(*pair.near, [&] { return pair.take(); });
  loop.turn(boot_now());
  const int before = events_asked;
  for (int i = 0; i < kTurns; ++i) loop.turn(boot_now());
  EXPECT_EQ(events_asked - before, 0);
  for (int i = 0; i < kTurns; ++i) {
    pair.send(1);
    loop.turn(boot_now());
  }
  EXPECT_EQ(events_asked - before, kTurns);
}

TEST_F(ZmqLoopOf, TellsOnceWhenASocketCanBeSentToAgain) {
  Pair pair(*context, "pair");
  ASSERT_TRUE(pair.near->set(ZMQ_SNDHWM, 1).ok());
  const ZmqWatchId id = loop.watch(*pair.near, [&] { return pair.take(); });
  const auto fill = [&] {
    for (;;) {
      auto frames = one_frame("x");
      if (!pair.near->send(frames).ok()) return;
    }
  };
  int told = 0;
  for (int round = 1; round <= 3; ++round) {
    fill();
    loop.when_writable(id, [&] { ++told; });
    loop.turn(boot_now());
    EXPECT_EQ(told, round - 1);
    std::vector<ZmqFrame> out;
    while (pair.far->receive(out, 1) == ZmqSocket::Taken::kMessage) {
    }
    loop.turn(boot_now() + Duration::seconds(10));
    EXPECT_EQ(told, round);
    loop.turn(boot_now());
    EXPECT_EQ(told, round);
  }
}

// More descriptors are ready than a turn of the EventLoop takes: the sockets come first all the same.
TEST_F(ZmqLoopOf, TakesMessagesBeforeTimersHoweverManyDescriptorsAreReady) {
  constexpr int kMany = 200;
  std::vector<UniqueFd> ready;
  for (int i = 0; i < kMany; ++i) {
    ready.emplace_back(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
    ASSERT_TRUE(events->watch(ready.back().get(), Interest::kRead, [](Readiness) {}).ok());
  }
  Pair pair(*context, "pair");
  std::string order;
  loop.watch(*pair.near, [&] { return pair.take() && (order += "message ", true); });
  for (int i = 0; i < 10; ++i) {
    loop.turn(boot_now());
    order.clear();
    events->at(boot_now(), [&] { order += "timer "; });
    pair.send(1);
    loop.turn(boot_now());
    EXPECT_EQ(order, "message timer ");
  }
}

TEST_F(ZmqLoopOf, AsksWhetherItMayLookOnceLooksBeginToPayAndStillHearsAll) {
  Pair pair(*context, "pair");
  int taken = 0;
  loop.watch(*pair.near, [&] { return pair.take() && (++taken, true); });
  int times = 0;
  loop.look_before_sleep([&] { return ++times % 2 == 1; });
  int sent = 0;
  for (int round = 1; round <= 3; ++round) {
    const int before = times;
    for (int i = 0; i < 20; ++i) loop.turn(boot_now() + Duration::milliseconds(1));
    EXPECT_EQ(times, before) << "not while little comes";
    // Where others take its processor the loop rests from looking, and counts what comes all the same.
    for (const Instant end = boot_now() + Duration::seconds(60); times == before && boot_now() < end;) {
      pair.send(1);
      ++sent;
      while (taken < sent) loop.turn(boot_now() + Duration::seconds(10));
    }
    EXPECT_EQ(times, before + 1);
  }
}

// As where the kernel has no room for one more in an epoll.
TEST_F(ZmqLoopOf, ServesASocketWhoseDescriptorCannotBeWatched) {
  Pair pair(*context, "pair");
  const auto taken_before = events->watch(pair.near->descriptor().value(), Interest::kNone, [](Readiness) {});
  ASSERT_TRUE(taken_before.ok());
  int taken = 0;
  const ZmqWatchId id = loop.watch(*pair.near, [&] { return pair.take() && (++taken, true); });
  for (int sent = 1; sent <= 3; ++sent) {
    pair.send(1);
    for (const Instant end = boot_now() + Duration::seconds(10); taken < sent && boot_now() < end;) loop.turn(end);
    EXPECT_EQ(taken, sent);
  }
  events->forget(*taken_before);
  loop.turn(boot_now());
  const int before = events_asked;
  for (int i = 0; i < 10; ++i) loop.turn(boot_now());
  EXPECT_EQ(events_asked - before, 0) << "it is watched now";
  loop.forget(id);
}

}  // namespace
}  // namespace monarch
