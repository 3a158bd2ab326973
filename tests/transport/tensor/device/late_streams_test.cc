// How much is asked of a driver whose streams are late, or that refuses memory.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

std::atomic<std::uint64_t> told_to_copy{0};

class CountingCuda final : public BentCuda {
 public:
  using BentCuda::BentCuda;
  Status to_device(const CudaCopy& copy, const CudaStream& stream) override {
    ++told_to_copy;
    return real_->to_device(copy, stream);
  }
};

// A pull of as many copies, of two rows each, as a stream cannot have queued.
class ManyCopies {
 public:
  static constexpr std::uint64_t kCopies = DeviceDestination::kCopies * 4;
  static constexpr std::uint64_t kRow = 8;     // bytes
  static constexpr std::uint64_t kPitch = 16;  // on the GPU
  static constexpr std::uint64_t kTwoRows = 40;

  ManyCopies() : gang_((test_cuda = by<BentCuda>(), 1U), 1) {
    reader_ = std::make_unique<TestReader>(
        std::vector<PullPart>{{.tensor = kind_,
                               .box = whole(kind_.shape),
                               .data = into_.data(),
                               .strides = {kTwoRows, kPitch, 1},
                               .device = 0}},
        LinkWays{.machine = {}, .shm = true, .verbs = false, .tcp = false}, "weights",
        std::make_unique<DeviceDestination>(by<CountingCuda>().find().value(), by<CountingCuda>(), "weights",
                                            std::vector<VerbsDestination::Span>{}));
    reader_->finds(gang_);
  }
  ManyCopies(const ManyCopies&) = delete;
  ManyCopies& operator=(const ManyCopies&) = delete;
  ~ManyCopies() {
    reader_.reset();
    gang_.kill(0);
    test_cuda = {};
    stream_.drain();
  }

  GpuStream& stream() { return stream_; }
  void publish() {
    std::string bytes(from_.size(), '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte(i);
    from_.poke(bytes);
    Publisher& publisher = gang_.publisher(0);
    ASSERT_TRUE(publisher.begin(1).ok());
    const Status put = publisher.put_device(kind_, whole(kind_.shape), {from_.data(), owners_.stream()},
                                            dense_strides(kind_.shape, 1));
    ASSERT_TRUE(put.ok()) << put.error().message;
    ASSERT_TRUE(publisher.commit().ok());
  }
  PullOutcome pull(Duration timeout) {
    return reader_->pull->run({.newer_than = {}, .timeout = timeout, .stream = stream_.stream().handle});
  }
  bool is_whole() const {
    const std::string seen = into_.peek();
    for (std::size_t i = 0; i < from_.size(); ++i) {
      const std::size_t row = i / kRow;
      if (seen[row / 2 * kTwoRows + row % 2 * kPitch + i % kRow] != byte(i)) return false;
    }
    return true;
  }

 private:
  static char byte(std::size_t at) { return static_cast<char>(1 + at % 251); }
  template <class Bent>
  static CudaEnd by() {
    return {.find = []() -> Result<SharedCuda> { return bent<Bent>(load_libcuda().value()); }};
  }

  const TensorKind kind_{"w", kUint8, {kCopies, 2, kRow}};
  GpuMemory from_{kCopies * 2 * kRow};
  GpuMemory into_{kCopies * kTwoRows};
  GpuStream owners_;
  GpuStream stream_;
  TensorGang gang_;
  std::unique_ptr<TestReader> reader_;
};

// The driver would have the caller wait, whom no deadline and no cancel would reach then.
TEST(LateStreamsTest, HasNoMoreCopiesQueuedThanADriverTakes) {
  ManyCopies many;
  many.publish();
  many.stream().spin(300'000);
  told_to_copy = 0;
  EXPECT_EQ(failure(many.pull(Duration::milliseconds(100))).how, PullEnd::kTimeout);
  EXPECT_EQ(told_to_copy, DeviceDestination::kCopies);
  EXPECT_EQ(pulled(many.pull(Duration::seconds(20))).by_shm, 1U);
  EXPECT_TRUE(many.is_whole());
}

// What was READ of a piece is thrown away, its room is another's, and the same bytes come over the link.
TEST(LateStreamsTest, GoesOnByTheLinkWhereACardFails) {
  for (int reads = 1; reads <= 40; reads += 3) {
    const TestDevices devices;
    if (has_real_devices()) GTEST_SKIP() << "no READ of theirs fails";
    make_streams_late(150, static_cast<unsigned>(reads));
    StagedOptions options;
    options.ways = {.machine = {}, .shm = false, .verbs = true, .tcp = true};
    options.pins = reads % 2 == 1;
    StagedGang gang(options);
    gang.publish(1);
    devices.fabric().reads_left = reads;
    const Pulled got = pulled(gang.pull());
    EXPECT_EQ(got.by_verbs + got.by_tcp, 2U);
    EXPECT_EQ(gang.wrong(1), 0U) << "after " << reads;
    devices.fabric().reads_left = -1;
    gang.publish(2);
    EXPECT_EQ(pulled(gang.pull(got.version)).version.version.number, 2U);
    EXPECT_EQ(gang.wrong(2), 0U) << "after " << reads;
    make_streams_late(0, 1);
  }
}

// A child that is forked while rooms are used shares none of them: what is written there next would go to other pages
// than those that devices know.
TEST(LateStreamsTest, SharesNoRoomWithAChild) {
  const CudaEnd end{.find = load_libcuda};
  const DeviceDestination destination(load_libcuda().value(), end, "weights", {});
  const VerbsDestination::Span rooms = destination.spans().front();
  ASSERT_EQ(::msync(rooms.start, rooms.bytes, MS_ASYNC), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(::msync(rooms.start, rooms.bytes, MS_ASYNC) == 0 ? 1 : 0);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
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
