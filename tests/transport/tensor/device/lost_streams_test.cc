// Streams that a version or a pull cannot ask any more, since they are captured, gone or another thread's: what copies
// of them are under way to is let go of by nobody.

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/transport/tensor/device/bent_cuda.h"
#include "tests/transport/tensor/device/staged_gang.h"

namespace monarch::tensor {
namespace {

class LostStreamsTest : public ::testing::Test {
 protected:
  LostStreamsTest() { options_.ways = {.machine = {}, .shm = true, .verbs = false, .tcp = false}; }
  ~LostStreamsTest() override {
    make_pageable_late(false);
    heal_cuda();
  }
  StagedOptions options_;
};

TEST_F(LostStreamsTest, WaitsForAStreamThatIsCapturedSince) {
  StagedGang gang(options_);
  for (std::uint64_t version = 1; version <= 4; ++version) {
    gang.stream(0).spin(20'000);
    ASSERT_TRUE(gang.put(0, version).ok());
    gang.stream(0).capture(true);
    const Status done = gang.gang().publisher(0).commit();
    gang.stream(0).capture(false);
    ASSERT_TRUE(done.ok()) << done.error().message;
    ASSERT_TRUE(gang.publish(1, version).ok());
  }
  EXPECT_EQ(pulled(gang.pull()).version.version.number, 4U);
  EXPECT_EQ(gang.wrong(4), 0U);
}

TEST_F(LostStreamsTest, WaitsForTheStreamOfAnotherThread) {
  make_pageable_late(true);
  const CudaStream its{.device = 0, .handle = kStreamOfThread};
  const GpuMemory memory(Staged::kRows * Staged::kColumns);
  StagedGang gang(options_);
  Publisher& publisher = gang.gang().publisher(0);
  ASSERT_TRUE(publisher.begin(1).ok());
  std::thread([&] {
    ASSERT_EQ(fake::call("fakeSpin", fake::handle(its), 300'000U), 0);
    const Box box = whole(Staged::kind(0).shape);
    const Status put = publisher.put_device(Staged::kind(0), box, {memory.data(), its}, {Staged::kColumns, 1});
    EXPECT_TRUE(put.ok()) << put.error().message;
  }).join();
  EXPECT_EQ(publisher.commit(Duration::milliseconds(50)).error().code, ErrorCode::kTimeout);
}

TEST_F(LostStreamsTest, PublishesNoVersionOfWhichAPutHasFailed) {
  StagedGang gang(options_);
  gang.publish(1);
  make_cuda_fail("cuMemcpyDtoHAsync_v2:1:3");
  Publisher& publisher = gang.gang().publisher(0);
  ASSERT_TRUE(publisher.begin(2).ok());
  std::string failed;
  GpuMemory memory(2 * Staged::kColumns);
  for (std::uint64_t tensor = 0; tensor < Staged::kTensors; ++tensor) {
    const Status put = publisher.put_device(Staged::kind(tensor), {{0, 0}, {2, Staged::kColumns}},
                                            {memory.data(), gang.stream(0).stream()}, {Staged::kColumns, 1});
    if (!put.ok()) failed = put.error().message;
  }
  EXPECT_NE(failed.find("CUDA_ERROR_INVALID_VALUE"), std::string::npos) << failed;
  EXPECT_EQ(publisher.commit().error().code, ErrorCode::kDevice);
  gang.stream(0).drain();
  ASSERT_TRUE(gang.publish(0, 3).ok()) << "the next one is another";
}

// The driver has no event for what was put, and ends a process that lets go of memory meanwhile.
TEST_F(LostStreamsTest, KeepsMemoryOfAVersionThatNoEventTellsTheEndOf) {
  make_pageable_late(true);
  for (const std::uint64_t version : {1U, 3U}) {
    StagedGang gang(options_);
    for (std::uint64_t before = 1; before < version; ++before) gang.publish(before);
    gang.stream(0).spin(200'000);
    make_cuda_fail("cuEventCreate:2:2");  // the first is the check's
    const Status put = gang.put(0, version);
    heal_cuda();
    ASSERT_FALSE(put.ok());
    EXPECT_EQ(put.error().code, ErrorCode::kDevice);
    gang.gang().kill(0);
    ASSERT_EQ(gang.said().size(), 1U);
    EXPECT_NE(gang.said().front().find("is given up: GPU 0"), std::string::npos) << gang.said().front();
  }
}

TEST_F(LostStreamsTest, BeginsNoMoreVersionsThanItHasMemoryFor) {
  make_pageable_late(true);
  StagedGang gang(options_);
  gang.stream(0).spin(400'000);
  EXPECT_EQ(gang.publish(0, 1, Duration()).error().code, ErrorCode::kTimeout);
  EXPECT_EQ(gang.publish(0, 2, Duration()).error().code, ErrorCode::kTimeout);
  const Status third = gang.publish(0, 3, Duration());
  EXPECT_EQ(third.error().code, ErrorCode::kBusy);
  EXPECT_NE(third.error().message.find("GPU 0 (fake GPU 0) still copies into 2 versions"), std::string::npos);
  gang.stream(0).drain();
  EXPECT_TRUE(gang.publish(0, 3).ok());
}

// Where no event is to be had the pull fails, and its memory is kept from who comes next.
TEST_F(LostStreamsTest, KeepsMemoryOfAPullThatNoEventTellsTheEndOf) {
  for (const bool shm : {true, false}) {
    options_.ways.shm = shm;
    options_.ways.tcp = !shm;
    StagedGang gang(options_);
    gang.publish(1);
    gang.reader_stream().spin(200'000);
    make_cuda_fail("cuEventCreate:2:2");  // the first is the check's
    const PullFailure failed = failure(gang.pull());
    heal_cuda();
    EXPECT_EQ(failed.how, PullEnd::kDevice);
    EXPECT_NE(failed.text.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << failed.text;
    ASSERT_EQ(gang.said().size(), 1U);
    EXPECT_NE(gang.said().front().find("is given up: a stream of GPU 0"), std::string::npos) << gang.said().front();
  }
}

}  // namespace
}  // namespace monarch::tensor
