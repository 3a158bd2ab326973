#include "transport/tensor/core/nccl_life.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

namespace monarch::tensor {
namespace {

TEST(NcclLife, SaysItsFirstCauseToAllWhoAskLater) {
  NcclLife life("group sync");
  EXPECT_TRUE(life.enter());
  life.leave();
  EXPECT_TRUE(life.end("generator/2 has ended"));
  EXPECT_FALSE(life.end("this member has left it"));
  EXPECT_FALSE(life.enter());
  EXPECT_EQ(life.gone().code, ErrorCode::kGone);
  EXPECT_EQ(life.gone().message, "group sync: generator/2 has ended");
}

TEST(NcclLife, IsAbortedOnceNobodyIsInACall) {
  NcclLife life("group sync");
  EXPECT_FALSE(life.begin_abort(true)) << "it has not ended";
  EXPECT_FALSE(life.begin_abort(false));
  ASSERT_TRUE(life.enter());
  ASSERT_TRUE(life.enter());
  ASSERT_TRUE(life.end("x"));
  EXPECT_FALSE(life.begin_abort(true));
  life.leave();
  EXPECT_FALSE(life.begin_abort(true));
  life.leave();
  EXPECT_TRUE(life.begin_abort(true));
  EXPECT_FALSE(life.begin_abort(true));
  EXPECT_FALSE(life.begin_abort(false));
  life.over();
  EXPECT_EQ(life.phase(), NcclLife::Phase::kOver);
  EXPECT_FALSE(life.begin_abort(false));
}

TEST(NcclLife, IsAbortedUnderWhoDoesNotComeBack) {
  NcclLife life("group sync");
  ASSERT_TRUE(life.enter());
  ASSERT_TRUE(life.end("x"));
  EXPECT_TRUE(life.begin_abort(false));
  life.leave();
  EXPECT_FALSE(life.begin_abort(true));
}

TEST(NcclLife, HoldsThroughAnyOrder) {
  for (std::uint32_t seed = 1; seed <= 2'000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    NcclLife life("g");
    std::uint32_t inside = 0;
    int aborts = 0;
    bool ended = false;
    for (int step = 0; step < 40; ++step) {
      switch (random() % 6) {
        case 0:
        case 1: {
          const bool entered = life.enter();
          ASSERT_EQ(entered, !ended) << "L2";
          inside += entered ? 1 : 0;
          break;
        }
        case 2:
          if (inside > 0) {
            life.leave();
            --inside;
          }
          break;
        case 3:
          if (random() % 4 == 0) {
            ASSERT_EQ(life.end("x"), !ended);
            ended = true;
          }
          break;
        case 4:
          if (life.begin_abort(true)) {
            ASSERT_EQ(inside, 0U) << "L2";
            ++aborts;
          }
          break;
        default:
          if (life.phase() == NcclLife::Phase::kAborting) life.over();
          break;
      }
      ASSERT_LE(aborts, 1) << "L1";
      ASSERT_EQ(life.has_ended(), ended);
    }
  }
}

}  // namespace
}  // namespace monarch::tensor
