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

}  // namespace
}  // namespace monarch::tensor
