// Puts from memory of GPUs and pulls into it, by late streams of the fake driver (tests/cuda), over each lane: what a
// slot holds at a block's end, and a GPU at a pull's return, is what the caller's streams had in their order.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>

#include "tests/transport/tensor/device/bent_cuda.h"
#include "tests/transport/tensor/device/staged_gang.h"
#include "tests/transport/tensor/test_devices.h"
#include "transport/base/sanitizers.h"

namespace monarch::tensor {
namespace {

constexpr unsigned kSeeds = 300;
constexpr unsigned kParts = 4;  // they wait side by side

LinkWays ways_of(unsigned seed) {
  const unsigned way = seed % 3;
  return {.machine = {}, .shm = way == 0, .verbs = way == 1, .tcp = way == 2};
}

StagedOptions options_of(unsigned seed) {
  StagedOptions options;
  options.ways = ways_of(seed);
  options.pins = seed / 3 % 3 != 2;
  options.pitch = seed / 9 % 2 == 0 ? Staged::kColumns : 192;
  return options;
}

void be_late_by(unsigned seed) {
  constexpr std::array<unsigned, 3> kLate{5, 40, 150};  // microseconds
  make_streams_late(kLate[seed / 18 % kLate.size()], seed);
  make_pageable_late(seed / 54 % 2 == 1);
}

// How many bytes were wrong of a few versions; a reader comes while the next one is written.
std::uint64_t wrong_bytes(const StagedOptions& options, std::uint64_t versions) {
  StagedGang gang(options);
  std::uint64_t wrong = 0;
  std::optional<PulledVersion> seen;
  for (std::uint64_t version = 1; version <= versions; ++version) {
    gang.publish(version);
    if (::testing::Test::HasFailure()) return wrong;
    const Pulled got = pulled(gang.pull(seen));
    EXPECT_EQ(got.version.version.number, version);
    wrong += gang.wrong(version);
    seen = got.version;
  }
  return wrong;
}

class StagingTest : public ::testing::Test {
 protected:
  ~StagingTest() override {
    make_streams_late(0, 1);
    make_pageable_late(false);
    heal_cuda();
  }
  TestDevices devices_;
};

class OrderTest : public StagingTest, public ::testing::WithParamInterface<unsigned> {};

INSTANTIATE_TEST_SUITE_P(Seeds, OrderTest, ::testing::Range(0U, kParts));

TEST_P(OrderTest, IsThatOfTheCallersStreams) {
  const std::uint64_t before = count_of(CudaCount::kPinned);
  for (unsigned seed = 1 + GetParam(); seed <= kSeeds; seed += kParts) {
    be_late_by(seed);
    ASSERT_EQ(wrong_bytes(options_of(seed), 3), 0U) << "seed " << seed;
  }
  EXPECT_EQ(count_of(CudaCount::kPinned), before);
}

TEST_F(StagingTest, TakesEachLaneAndRegistersWhatItMay) {
  const std::uint64_t before = count_of(CudaCount::kPinned);
  for (const bool pins : {true, false}) {
    for (const unsigned way : {0U, 1U, 2U}) {
      StagedOptions options;
      options.ways = ways_of(way);
      options.pins = pins;
      StagedGang gang(options);
      gang.publish(1);
      const Pulled got = pulled(gang.pull());
      EXPECT_EQ(way == 0 ? got.by_shm : way == 1 ? got.by_verbs : got.by_tcp, 2U);
      EXPECT_EQ(gang.wrong(1), 0U);
      gang.publish(2);
      gang.publish(3);
      EXPECT_EQ(count_of(CudaCount::kPinned) > before, pins);
      EXPECT_EQ(gang.wrong(pulled(gang.pull(got.version)).version.version.number), 0U);
      EXPECT_TRUE(gang.said().empty()) << gang.said().front();
    }
  }
  EXPECT_EQ(count_of(CudaCount::kPinned), before);
}

// ---- Mistakes that the seeds catch.

class HastyEvent final : public CudaEvent {
 public:
  Result<bool> is_done() override { return true; }
};

// The end of copies is waited for by nobody.
class HastyCuda final : public BentCuda {
 public:
  using BentCuda::BentCuda;
  Result<std::unique_ptr<CudaEvent>> record(const CudaStream& /*stream*/) override {
    return std::unique_ptr<CudaEvent>(new HastyEvent);
  }
};

// Copies run on a stream of their own.
class OtherStreamCuda final : public BentCuda {
 public:
  using BentCuda::BentCuda;
  Status to_host(const CudaCopy& copy, const CudaStream& /*stream*/) override {
    return real_->to_host(copy, other_.stream());
  }
  Status to_device(const CudaCopy& copy, const CudaStream& /*stream*/) override {
    return real_->to_device(copy, other_.stream());
  }
  Result<std::unique_ptr<CudaEvent>> record(const CudaStream& /*stream*/) override {
    return real_->record(other_.stream());
  }

 private:
  GpuStream other_;
};

// Rows lie as close to each other on the GPU as in the host's memory.
class CloseRowsCuda final : public BentCuda {
 public:
  using BentCuda::BentCuda;
  Status to_device(const CudaCopy& copy, const CudaStream& stream) override {
    CudaCopy close = copy;
    close.device_pitch = close.row;
    return real_->to_device(close, stream);
  }
};

// A room is filled again before what was in it is copied.
class HastyRooms final : public DeviceDestination {
 public:
  using DeviceDestination::DeviceDestination;
  void filled(const Piece& piece, const Room& room) override {
    DeviceDestination::filled(piece, room);
    drop(room);
  }
};

template <class Bent>
std::unique_ptr<DeviceDestination> hasty(SharedCuda cuda, CudaEnd end, std::string name) {
  return std::make_unique<Bent>(std::move(cuda), std::move(end), std::move(name),
                                std::vector<VerbsDestination::Span>{});
}

struct Mutant {
  const char* name;
  std::function<void(StagedOptions&)> change;
};

std::vector<Mutant> mutants() {
  return {
      {"owner-end-not-waited-for", [](StagedOptions& options) { options.owner = bent<HastyCuda>; }},
      {"owner-copies-on-another-stream", [](StagedOptions& options) { options.owner = bent<OtherStreamCuda>; }},
      {"reader-copies-on-another-stream", [](StagedOptions& options) { options.reader = bent<OtherStreamCuda>; }},
      {"reader-rows-too-close", [](StagedOptions& options) { options.reader = bent<CloseRowsCuda>; }},
      {"return-before-the-copies", [](StagedOptions& options) { options.reader = bent<HastyCuda>; }},
      {"rooms-reused-at-once", [](StagedOptions& options) { options.destination = hasty<HastyRooms>; }},
  };
}

TEST_F(StagingTest, CatchesMutants) {
  if (kSanitized) GTEST_SKIP() << "they do what a sanitizer looks for";
  for (const Mutant& mutant : mutants()) {
    bool caught = false;
    for (unsigned seed = 1; seed <= kSeeds && !caught; ++seed) {
      be_late_by(seed);
      make_pageable_late(false);  // memory that is freed already would be written
      StagedOptions options = options_of(seed);
      options.drains = true;
      mutant.change(options);
      caught = wrong_bytes(options, 2) > 0;
    }
    EXPECT_TRUE(caught) << mutant.name;
  }
}

// ---- The owner's word, and what is read behind it.

std::counting_semaphore<> slots_read(0);  // whose copies are enqueued

class TellsWhatIsRead : public DeviceDestination {
 public:
  using DeviceDestination::DeviceDestination;
  Mark mark(std::shared_ptr<const void> keeps) override {
    const Mark mark = DeviceDestination::mark(std::move(keeps));
    slots_read.release();
    return mark;
  }
};

class HastyWord final : public TellsWhatIsRead {
 public:
  using TellsWhatIsRead::TellsWhatIsRead;
  bool has_passed(Mark /*mark*/) const override { return true; }
};

// Copies from a slot are late, and meanwhile it is written over: what was read of it is not taken for a version.
template <class Reader>
std::uint64_t wrong_after_a_late_read() {
  StagedOptions options;
  options.ways = ways_of(0);
  options.destination = hasty<Reader>;
  StagedGang gang(options);
  gang.publish(1);
  const Pulled first = pulled(gang.pull());
  gang.publish(2);
  while (slots_read.try_acquire()) {
  }
  gang.reader_stream().spin(300'000);
  std::thread writer([&] {
    EXPECT_TRUE(slots_read.try_acquire_for(std::chrono::seconds(20)));
    for (std::uint64_t version = 3; version <= 5; ++version) gang.publish(version);
  });
  const PullOutcome outcome = gang.pull(first.version);
  writer.join();
  return gang.wrong(pulled(outcome).version.version.number);
}

TEST_F(StagingTest, LooksAtAWordOnceNothingOfItsSlotIsRead) {
  EXPECT_EQ(wrong_after_a_late_read<TellsWhatIsRead>(), 0U);
  if (kSanitized) return;
  EXPECT_GT(wrong_after_a_late_read<HastyWord>(), 0U) << "the mutant word-looked-at-before";
}

// The driver ends a process that unmaps memory before it is unregistered.
class KeepingCuda final : public BentCuda {
 public:
  using BentCuda::BentCuda;
  Result<std::unique_ptr<CudaPin>> pin(char* start, std::uint64_t bytes) override {
    MONARCH_ASSIGN(auto pin, real_->pin(start, bytes));
    kept.push_back(std::move(pin));
    return std::unique_ptr<CudaPin>(new CudaPin);
  }

  inline static std::vector<std::unique_ptr<CudaPin>> kept;
};

void publish_by_who_keeps_pins() {
  StagedOptions options;
  options.ways = ways_of(0);
  options.owner = bent<KeepingCuda>;
  {
    StagedGang gang(options);
    for (std::uint64_t version = 1; version <= 3; ++version) gang.publish(version);
  }
  KeepingCuda::kept.clear();
}

TEST_F(StagingTest, UnregistersBeforeItUnmaps) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(publish_by_who_keeps_pins(), "unmapped before it was unregistered");
}

// ---- Streams that fail, or do not come.

TEST_F(StagingTest, FailsTheVersionWhoseStreamDoes) {
  StagedOptions options;
  options.ways = ways_of(0);
  {
    StagedGang gang(options);
    gang.publish(1);
    ASSERT_TRUE(gang.put(0, 2).ok());
    gang.stream(0).drain();
    make_cuda_fail("copy:700:1");
    // The copy fails in its stream, which a later put may be told, or the version's end.
    Status failed = gang.put(1, 2);
    if (failed.ok()) failed = gang.gang().publisher(1).commit();
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, ErrorCode::kDevice);
    EXPECT_NE(failed.error().message.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << failed.error().message;
    heal_cuda();
  }
  EXPECT_EQ(wrong_bytes(options, 2), 0U) << "a new publisher's next version is whole";
}

TEST_F(StagingTest, FailsThePullWhoseStreamDoes) {
  for (const unsigned way : {0U, 1U, 2U}) {
    StagedOptions options;
    options.ways = ways_of(way);
    StagedGang gang(options);
    gang.publish(1);
    make_cuda_fail("copy:700:3");
    const PullFailure failed = failure(gang.pull());
    EXPECT_EQ(failed.how, PullEnd::kDevice);
    EXPECT_NE(failed.text.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << failed.text;
    heal_cuda();
    EXPECT_EQ(pulled(gang.pull()).version.version.number, 1U);
    EXPECT_EQ(gang.wrong(1), 0U);
  }
}

TEST_F(StagingTest, TimesOutAndPutsAsideWhatIsStillWritten) {
  StagedOptions options;
  options.ways = ways_of(0);
  StagedGang gang(options);
  gang.publish(1);
  gang.publish(2);
  gang.stream(0).spin(300'000);
  const Status late = gang.publish(0, 3, Duration::milliseconds(50));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(late.error().message, "version 3 of weights waits for a stream of GPU 0 (fake GPU 0) for longer than 50ms");
  gang.publish(4);
  EXPECT_EQ(pulled(gang.pull()).version.version.number, 4U);
  EXPECT_EQ(gang.wrong(4), 0U);
}

TEST_F(StagingTest, ReturnsFromAPullWhoseStreamIsLate) {
  for (const unsigned way : {0U, 2U}) {
    StagedOptions options;
    options.ways = ways_of(way);
    StagedGang gang(options);
    gang.publish(1);
    gang.reader_stream().spin(400'000);
    const PullFailure late = failure(gang.pull({}, Duration::milliseconds(100)));
    EXPECT_EQ(late.how, PullEnd::kTimeout);
    EXPECT_NE(late.text.find("version 1 is not here from rank 0, 1"), std::string::npos) << late.text;
    EXPECT_EQ(pulled(gang.pull()).version.version.number, 1U);
    EXPECT_EQ(gang.wrong(1), 0U);
  }
}

TEST_F(StagingTest, GivesUpByNameWhatDoesNotEnd) {
  StagedOptions options;
  options.ways = ways_of(0);
  std::vector<std::string> said;
  {
    StagedGang gang(options);
    gang.publish(1);
    gang.reader_stream().spin(6'000'000);
    EXPECT_EQ(failure(gang.pull({}, Duration::milliseconds(100))).how, PullEnd::kTimeout);
    ASSERT_EQ(gang.said().size(), 1U);
    EXPECT_NE(gang.said().front().find("is given up: a stream of GPU 0"), std::string::npos) << gang.said().front();
    const PullFailure again = failure(gang.pull());
    EXPECT_EQ(again.how, PullEnd::kDevice);
    EXPECT_NE(again.text.find("given up"), std::string::npos) << again.text;
  }
}

// What is still written is nobody's, whichever version it is of; the driver ends a process that lets go of it.
TEST_F(StagingTest, KeepsWhatIsWrittenWhenItsPublisherGoes) {
  make_pageable_late(true);
  for (const std::uint64_t version : {1U, 3U}) {
    StagedOptions options;
    options.ways = ways_of(0);
    StagedGang gang(options);
    for (std::uint64_t before = 1; before < version; ++before) gang.publish(before);
    gang.stream(0).spin(200'000);
    ASSERT_TRUE(gang.put(0, version).ok());
    gang.gang().kill(0);
    EXPECT_TRUE(gang.said().empty()) << gang.said().front();
  }
}

// ---- What is refused.

TEST_F(StagingTest, RefusesWhatMayNotBeCopied) {
  StagedOptions options;
  options.ways = ways_of(0);
  StagedGang gang(options);
  Publisher& publisher = gang.gang().publisher(0);
  ASSERT_TRUE(publisher.begin(1).ok());
  const Box box{{0, 0}, {2, Staged::kColumns}};
  std::vector<char> host(2 * Staged::kColumns);
  const auto put = [&](const char* at, CudaStream stream) {
    const Status done = publisher.put_device(Staged::kind(0), box, {at, stream}, {Staged::kColumns, 1});
    return done.ok() ? std::string("it was put") : done.error().message;
  };
  EXPECT_NE(put(host.data(), {0, 0}).find("tensor t0: "), std::string::npos);
  const GpuMemory other(2 * Staged::kColumns, 1);
  EXPECT_NE(put(other.data(), {0, 0}).find("its memory is on GPU 1"), std::string::npos);
  EXPECT_NE(put(other.data(), {1, gang.stream(0).stream().handle}), "it was put") << "a stream of another GPU";
  const GpuMemory own(2 * Staged::kColumns);
  gang.stream(0).capture(true);
  EXPECT_NE(put(own.data(), gang.stream(0).stream()).find("captur"), std::string::npos);
  gang.stream(0).capture(false);
  EXPECT_EQ(put(own.data(), gang.stream(0).stream()), "it was put");
  publisher.abandon();
  gang.stream(0).drain();
}

}  // namespace
}  // namespace monarch::tensor
