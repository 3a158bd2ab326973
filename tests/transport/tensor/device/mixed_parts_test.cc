// A pull into the host's memory and that of two GPUs at once, on the default stream of each, from memory of the host
// and of a GPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/transport/tensor/device/staged_gang.h"
#include "tests/transport/tensor/test_devices.h"

namespace monarch::tensor {
namespace {

class MixedParts {
 public:
  static constexpr std::uint64_t kRows = 12;
  static constexpr std::uint64_t kColumns = 64;  // bytes
  static constexpr std::uint64_t kPitch = 96;

  MixedParts(const LinkWays& ways, bool pins)
      : end_{.find = load_libcuda, .pins = pins, .say = [](const std::string& /*line*/) {}},
        gang_((test_cuda = end_, 1U), 1) {
    std::vector<PullPart> parts;
    const std::array<char*, 3> into{host_.data(), into_[0].data(), into_[1].data()};
    for (int place = 0; place < 3; ++place) {
      // Rows of both tensors: one is of the host's memory, one of a GPU's.
      for (std::uint64_t tensor = 0; tensor < 2; ++tensor) {
        parts.push_back({.tensor = kind(tensor),
                         .box = whole(kind(tensor).shape),
                         .data = into[static_cast<std::size_t>(place)] + tensor * kRows * kPitch,
                         .strides = {kPitch, 1},
                         .device = place - 1});
      }
    }
    // Of a GPU that there is not, and of none of its memory.
    parts.push_back(
        {.tensor = kind(0), .box = {{0, 0}, {0, kColumns}}, .data = nullptr, .strides = {kPitch, 1}, .device = 7});
    auto spans = spans_of(parts);
    reader_ = std::make_unique<TestReader>(
        std::move(parts), ways, "weights",
        std::make_unique<DeviceDestination>(load_libcuda().value(), end_, "weights of trainer", std::move(spans)));
    reader_->finds(gang_);
  }
  MixedParts(const MixedParts&) = delete;
  MixedParts& operator=(const MixedParts&) = delete;
  ~MixedParts() {
    for (const int device : {0, 1}) drain(device);
    reader_.reset();
    gang_.kill(0);
    test_cuda = {};
  }

  Pull& reader() { return *reader_->pull; }
  static void spin(int device, unsigned us) {
    const fake::Context context(device);
    ASSERT_EQ(fake::call("fakeSpin", fake::handle({}), us), 0);
  }
  static void drain(int device) {
    const fake::Context context(device);
    (void)fake::call("fakeDrain", fake::handle({}));
  }
  void publish(std::uint64_t version) {
    std::string bytes(kRows * kColumns, '\0');
    Publisher& publisher = gang_.publisher(0);
    ASSERT_TRUE(publisher.begin(version).ok());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte(version, 0, i / kColumns);
    ASSERT_TRUE(publisher.put(kind(0), whole(kind(0).shape), bytes.data(), {kColumns, 1}).ok());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte(version, 1, i / kColumns);
    from_.poke(bytes);
    const Status put = publisher.put_device(kind(1), whole(kind(1).shape), {from_.data(), {0, 0}}, {kColumns, 1});
    ASSERT_TRUE(put.ok()) << put.error().message;
    const Status done = publisher.commit();
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  PullOutcome pull(std::optional<PulledVersion> newer_than, Duration timeout = Duration::seconds(20)) {
    std::fill(host_.begin(), host_.end(), '\0');
    for (GpuMemory& memory : into_) memory.poke(std::string(memory.size(), '\0'));
    return reader().run({.newer_than = newer_than, .timeout = timeout});
  }
  std::uint64_t wrong(std::uint64_t version) const {
    std::uint64_t wrong = 0;
    for (const std::string& seen : {std::string(host_.data(), host_.size()), into_[0].peek(), into_[1].peek()}) {
      for (std::size_t i = 0; i < seen.size(); ++i) {
        const std::size_t row = i / kPitch;
        const char wanted = i % kPitch < kColumns ? byte(version, row / kRows, row % kRows) : '\0';
        if (seen[i] != wanted) ++wrong;
      }
    }
    return wrong;
  }

 private:
  static TensorKind kind(std::uint64_t tensor) { return {text("t", tensor), kUint8, {kRows, kColumns}}; }
  static char byte(std::uint64_t version, std::uint64_t tensor, std::uint64_t row) {
    return static_cast<char>(1 + (version * 50 + tensor * 20 + row) % 120);
  }

  const CudaEnd end_;
  std::vector<char> host_ = std::vector<char>(2 * kRows * kPitch);
  std::array<GpuMemory, 2> into_{GpuMemory(2 * kRows * kPitch, 0), GpuMemory(2 * kRows * kPitch, 1)};
  GpuMemory from_{kRows * kColumns};
  TensorGang gang_;
  std::unique_ptr<TestReader> reader_;
};

class MixedPartsTest : public ::testing::TestWithParam<unsigned> {
 protected:
  ~MixedPartsTest() override {
    make_streams_late(0, 1);
    make_pageable_late(false);
  }
  LinkWays ways() const {
    const unsigned way = GetParam() % 3;
    return {.machine = {}, .shm = way == 0, .verbs = way == 1, .tcp = way == 2};
  }
  bool pins() const { return GetParam() < 3; }
  const TestDevices devices_;
};

INSTANTIATE_TEST_SUITE_P(Ways, MixedPartsTest, ::testing::Range(0U, 6U));

TEST_P(MixedPartsTest, AreWholeWhicheverGpuIsLate) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    make_streams_late(100, seed);
    make_pageable_late(seed % 2 == 1);
    MixedParts mixed(ways(), pins());
    std::optional<PulledVersion> seen;
    for (std::uint64_t version = 1; version <= 4; ++version) {
      mixed.publish(version);
      MixedParts::spin(static_cast<int>(version % 2), 3'000);
      const Pulled got = pulled(mixed.pull(seen));
      ASSERT_EQ(got.version.version.number, version);
      ASSERT_EQ(mixed.wrong(version), 0U) << "seed " << seed << ", version " << version;
      seen = got.version;
    }
  }
}

TEST_P(MixedPartsTest, AreCancelledWhileAGpuIsLate) {
  make_pageable_late(true);
  MixedParts mixed(ways(), pins());
  mixed.publish(1);
  MixedParts::spin(1, 400'000);
  bool said = false;
  const PullOutcome outcome = mixed.reader().run({.newer_than = {},
                                                  .waiting =
                                                      [&](const std::string& /*words*/) {
                                                        if (!std::exchange(said, true)) mixed.reader().cancel();
                                                      },
                                                  .waiting_every = Duration::milliseconds(50)});
  EXPECT_EQ(failure(outcome).how, PullEnd::kCancelled);
  EXPECT_TRUE(said);
  EXPECT_EQ(pulled(mixed.pull({})).version.version.number, 1U) << "the next one is not";
  EXPECT_EQ(mixed.wrong(1), 0U);
}

}  // namespace
}  // namespace monarch::tensor
