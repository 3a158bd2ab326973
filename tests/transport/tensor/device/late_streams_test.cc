// How much is asked of a driver whose streams are late, or that refuses memory.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/transport/tensor/device/bent_cuda.h"
#include "tests/transport/tensor/device/staged_gang.h"
#include "tests/transport/tensor/test_devices.h"

namespace monarch::tensor {
namespace {

std::atomic<std::uint64_t> asked_to_pin{0};

// It refuses all memory.
class RefusingCuda final : public BentCuda {
 public:
  using BentCuda::BentCuda;
  Result<std::unique_ptr<CudaPin>> pin(char* /*start*/, std::uint64_t /*bytes*/) override {
    ++asked_to_pin;
    return Error{ErrorCode::kBusy, "there is no more of it"};
  }
};

TEST(LateStreamsTest, ShowsADriverThatRefusesASlotItNoMore) {
  StagedOptions options;
  options.ways = {.machine = {}, .shm = true, .verbs = false, .tcp = false};
  options.owner = bent<RefusingCuda>;
  StagedGang gang(options);
  asked_to_pin = 0;
  for (std::uint64_t version = 1; version <= 6; ++version) gang.publish(version);
  EXPECT_EQ(asked_to_pin, 4U) << "two slots of two ranks";
  EXPECT_EQ(gang.said().size(), 2U);
  EXPECT_EQ(pulled(gang.pull()).version.version.number, 6U);
  EXPECT_EQ(gang.wrong(6), 0U);
}

// There are fewer rooms than pieces.
TEST(LateStreamsTest, BeginsAnewALaneThatWaitedForRoom) {
  const TestDevices devices;
  for (const unsigned way : {0U, 1U, 2U}) {
    StagedOptions options;
    options.ways = {.machine = {}, .shm = way == 0, .verbs = way == 1, .tcp = way == 2};
    options.pins = false;
    make_pageable_late(true);
    StagedGang gang(options);
    gang.publish(1);
    gang.reader_stream().spin(300'000);
    EXPECT_EQ(failure(gang.pull({}, Duration::milliseconds(100))).how, PullEnd::kTimeout);
    EXPECT_EQ(pulled(gang.pull({}, Duration::seconds(5))).version.version.number, 1U);
    EXPECT_EQ(gang.wrong(1), 0U);
    make_pageable_late(false);
  }
}

}  // namespace
}  // namespace monarch::tensor
