#pragma once

// A loop with a deadline for tests: run_until() turns it until something has happened.
//
// Thread: the test's.

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "transport/base/clock.h"
#include "transport/loop/event_loop.h"

namespace monarch {

class LoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loop = EventLoop::create();
    ASSERT_TRUE(loop.ok());
    loop_ = std::move(*loop);
  }

  // False when the deadline passed first.
  [[nodiscard]] bool run_until(const std::function<bool()>& done, Duration deadline = Duration::seconds(10)) {
    const Instant end = boot_now() + deadline;
    bool late = false;
    const TimerId alarm = loop_->at(end, [&late] { late = true; });
    while (!done() && !late) {
      loop_->run_once();
    }
    loop_->cancel(alarm);
    return done();
  }

  EventLoop& loop() { return *loop_; }

 private:
  std::unique_ptr<EventLoop> loop_;
};

}  // namespace monarch
