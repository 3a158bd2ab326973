#include "transport/wire/step_page.h"

#include <gtest/gtest.h>

#include "transport/loop/event_loop.h"
#include "transport/wire/sealed_memory.h"

namespace monarch {
namespace {

TEST(StepPage, TellsWhoReadsItWhatALoopHasDone) {
  StepPage page = make_step_page().value();
  const SeenSteps seen = SeenSteps::map(page.reader.get()).value();
  EXPECT_EQ(seen.read(), 0U);
  {
    const auto loop = EventLoop::create().value();
    loop->count_steps_in(std::move(page.count));
    loop->at(Instant(), [&] { EXPECT_EQ(seen.read(), 0U); });
    loop->at(Instant(), [&] { EXPECT_EQ(seen.read(), 1U) << "the timer before is a step"; });
    loop->defer([&] { loop->step(); });
    loop->turn();
    EXPECT_EQ(seen.read(), 4U);
  }
  EXPECT_EQ(seen.read(), 4U) << "who counted has gone";
}

TEST(StepPage, IsNotTakenFromWhatItsMakerCouldShrinkOrIsAnotherSize) {
  const UniqueFd other = make_sealed_memory("other", "no count of eight bytes").value();
  EXPECT_EQ(SeenSteps::map(other.get()).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(SeenSteps::map(0).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace monarch
