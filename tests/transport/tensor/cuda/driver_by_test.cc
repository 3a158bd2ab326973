#include "transport/tensor/cuda/driver_by.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda/fake_gpu.h"
#include "transport/base/clock.h"

namespace monarch::tensor {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// A driver of its own for each test: what one has begun to use the next one has not.
class CudaDriver : public ::testing::Test {
 protected:
  CudaDriver() {
    own_cuda::Functions cuda;
#define MONARCH_FIND(ours, theirs) cuda.ours = fake::function<std::remove_pointer_t<decltype(cuda.ours)>>(#theirs);
    MONARCH_CUDA_FUNCTIONS(MONARCH_FIND)
#undef MONARCH_FIND
    EXPECT_EQ(cuda.init(0), 0);
    cuda_ = driver_by(cuda);
    make_streams_late(0, 1);
    make_pageable_late(false);
  }
  ~CudaDriver() override {
    heal_cuda();
    EXPECT_EQ(count_of(CudaCount::kContexts), 0U);
    EXPECT_EQ(count_of(CudaCount::kEvents), 0U);
    EXPECT_EQ(count_of(CudaCount::kPinned), 0U);
    cuda_.reset();
    EXPECT_EQ(count_of(CudaCount::kRetained), 0U);
  }

  // Until what is enqueued there is done.
  Status settle(const CudaStream& stream) {
    MONARCH_ASSIGN(const auto event, cuda_->record(stream));
    for (const Instant until = boot_now() + Duration::seconds(20);;) {
      MONARCH_ASSIGN(const bool done, event->is_done());
      if (done) return {};
      if (boot_now() > until) return Error{ErrorCode::kTimeout, "the stream does not end"};
      (void)::poll(nullptr, 0, 1);
    }
  }

  SharedCuda cuda_;
};

class Mapped {
 public:
  explicit Mapped(std::uint64_t bytes, int protection = PROT_READ | PROT_WRITE) : bytes_(bytes) {
    at_ = ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(at_, MAP_FAILED);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() { (void)::munmap(at_, bytes_); }
  char* data() const { return static_cast<char*>(at_); }

 private:
  void* at_;
  std::uint64_t bytes_;
};

std::string pattern_of(std::uint64_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::string made(bytes, '\0');
  for (char& byte : made) byte = static_cast<char>(random());
  return made;
}

TEST_F(CudaDriver, SaysOfWhichGpuMemoryIs) {
  const GpuMemory first(64);
  const GpuMemory second(64, 1);
  const GpuMemory managed(64, 1, true);
  EXPECT_EQ(cuda_->device_of(first.data()).value(), 0);
  EXPECT_EQ(cuda_->device_of(second.data() + 63).value(), 1);
  EXPECT_EQ(cuda_->device_of(managed.data()).value(), 1);
  EXPECT_EQ(cuda_->device_name(1), "GPU 1 (fake GPU 1)");
  EXPECT_EQ(cuda_->device_name(7), "GPU 7");
}

TEST_F(CudaDriver, RefusesMemoryThatIsOfNoGpu) {
  const Mapped registered(4'096);
  const auto pin = cuda_->pin(registered.data(), 4'096).value();
  const auto host = cuda_->device_of(registered.data());
  EXPECT_EQ(host.error().code, ErrorCode::kInvalid);
  EXPECT_NE(host.error().message.find(" is the host's"), std::string::npos) << host.error().message;
  const auto unknown = cuda_->device_of(reinterpret_cast<const char*>(0xabc000));
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(unknown.error().message, "memory at 0xabc000 is of no GPU: its driver knows none there");
}

TEST_F(CudaDriver, TakesTheContextOfTheThreadBeforeOneOfGpu0) {
  const GpuMemory memory(64, 1);
  {
    const fake::Context mine(1);
    EXPECT_EQ(cuda_->device_of(memory.data()).value(), 1);
  }
  EXPECT_EQ(count_of(CudaCount::kRetained), 1U);  // GPU 1's, which the driver keeps
}

TEST_F(CudaDriver, CopiesWhatTheStreamHasThenBothWays) {
  GpuMemory memory(1'024);
  const Mapped host(4'096);
  for (const bool registered : {false, true}) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
      make_streams_late(300, seed);
      make_pageable_late(seed % 2 == 0);
      const GpuStream own;
      const auto pin = cuda_->pin(host.data(), registered ? 4'096 : 0).value();
      const std::string bytes = pattern_of(1'024, seed);
      memory.poke(bytes);
      const CudaCopy copy{.host = host.data(), .device = memory.data(), .row = 1'024};
      ASSERT_TRUE(cuda_->check(own.stream()).ok());
      ASSERT_TRUE(cuda_->to_host(copy, own.stream()).ok());
      memory.fill(own.stream(), 'x');  // what follows in the stream
      ASSERT_TRUE(settle(own.stream()).ok());
      ASSERT_EQ(std::string(host.data(), 1'024), bytes) << "seed " << seed;
      ASSERT_EQ(memory.peek(), std::string(1'024, 'x'));
      ASSERT_TRUE(cuda_->to_device(copy, own.stream()).ok());
      ASSERT_TRUE(settle(own.stream()).ok());
      ASSERT_EQ(memory.peek(), bytes) << "seed " << seed;
    }
  }
}

TEST_F(CudaDriver, CopiesRowsBothWays) {
  GpuMemory memory(64 * 48);
  const std::string bytes = pattern_of(64 * 48, 3);
  memory.poke(bytes);
  std::vector<char> host(64 * 32, '.');
  const CudaStream stream;
  CudaCopy rows{
      .host = host.data(), .device = memory.data() + 8, .row = 16, .rows = 64, .host_pitch = 32, .device_pitch = 48};
  ASSERT_TRUE(cuda_->to_host(rows, stream).ok());
  ASSERT_TRUE(settle(stream).ok());
  for (std::uint64_t row = 0; row < 64; ++row) {
    ASSERT_EQ(std::string(&host[row * 32], 16), bytes.substr(row * 48 + 8, 16));
    ASSERT_EQ(std::string(&host[row * 32 + 16], 16), std::string(16, '.'));
  }
  EXPECT_EQ(count_of(CudaCount::kRetained), 1U);
  rows.device = memory.data() + 24;
  ASSERT_TRUE(cuda_->to_device(rows, stream).ok());
  ASSERT_TRUE(settle(stream).ok());
  for (std::uint64_t row = 0; row < 64; ++row) {
    ASSERT_EQ(memory.peek().substr(row * 48 + 24, 16), bytes.substr(row * 48 + 8, 16));
    ASSERT_EQ(memory.peek().substr(row * 48, 24), bytes.substr(row * 48, 24));
  }
}

TEST_F(CudaDriver, CopiesRowsBehindWhatTheirStreamDoesBefore) {
  GpuMemory memory(64 * 48);
  std::vector<char> host(64 * 32);
  GpuStream own;
  own.spin(20'000);
  memory.fill(own.stream(), 'a');
  const CudaCopy rows{
      .host = host.data(), .device = memory.data(), .row = 16, .rows = 64, .host_pitch = 32, .device_pitch = 48};
  make_pageable_late(true);
  ASSERT_TRUE(cuda_->to_host(rows, own.stream()).ok());
  memory.fill(own.stream(), 'b');
  ASSERT_TRUE(settle(own.stream()).ok());
  for (std::uint64_t row = 0; row < 64; ++row) ASSERT_EQ(std::string(&host[row * 32], 16), std::string(16, 'a'));
}

TEST_F(CudaDriver, CopiesRowsThatAreFurtherApartThanADeviceTakes) {
  GpuMemory memory(3 * 16);
  const std::string bytes = pattern_of(3 * 16, 5);
  memory.poke(bytes);
  const Mapped host(5 * kGiB);
  const std::uint64_t pitch = 2 * kGiB;
  const std::uint64_t before = count_of(CudaCount::kCopies);
  const CudaCopy rows{
      .host = host.data(), .device = memory.data(), .row = 16, .rows = 3, .host_pitch = pitch, .device_pitch = 16};
  ASSERT_TRUE(cuda_->to_host(rows, {}).ok());
  ASSERT_TRUE(settle({}).ok());
  for (std::uint64_t row = 0; row < 3; ++row)
    EXPECT_EQ(std::string(host.data() + row * pitch, 16), bytes.substr(row * 16, 16));
  EXPECT_EQ(count_of(CudaCount::kCopies) - before, 3U);
}

TEST_F(CudaDriver, RegistersInPiecesAndCopiesAcrossThem) {
  GpuMemory memory(64 * 32);
  const std::string bytes = pattern_of(64 * 32, 7);
  memory.poke(bytes);
  const Mapped host(2 * kGiB + 4'096);
  const auto pin = cuda_->pin(host.data(), 2 * kGiB + 4'096).value();
  EXPECT_EQ(count_of(CudaCount::kPinned), 2 * kGiB + 4'096);
  char* const middle = host.data() + kGiB - 1'000;
  ASSERT_TRUE(cuda_->to_host({.host = middle, .device = memory.data(), .row = 64 * 32}, {}).ok());
  ASSERT_TRUE(settle({}).ok());
  EXPECT_EQ(std::string(middle, 64 * 32), bytes);
  const CudaCopy rows{
      .host = middle, .device = memory.data(), .row = 32, .rows = 64, .host_pitch = 40, .device_pitch = 32};
  ASSERT_TRUE(cuda_->to_host(rows, {}).ok());
  ASSERT_TRUE(settle({}).ok());
  for (std::uint64_t row = 0; row < 64; ++row)
    ASSERT_EQ(std::string(middle + row * 40, 32), bytes.substr(row * 32, 32));
}

TEST_F(CudaDriver, RegistersAllOrNothing) {
  const Mapped host(2 * kGiB + 4'096);
  make_cuda_fail("cuMemHostRegister_v2:2:3");
  const auto refused = cuda_->pin(host.data(), 2 * kGiB + 4'096);
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  EXPECT_EQ(refused.error().message,
            "registering 2147487744 bytes with the driver: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  EXPECT_EQ(count_of(CudaCount::kPinned), 0U);
  const Mapped readable(4'096, PROT_READ);
  EXPECT_EQ(cuda_->pin(readable.data(), 4'096).error().code, ErrorCode::kUnsupported);
  const auto pin = cuda_->pin(host.data(), 4'096).value();
  EXPECT_EQ(cuda_->pin(host.data(), 8'192).error().code, ErrorCode::kBusy);
}

TEST_F(CudaDriver, IsNotDoneBeforeTheStreamIs) {
  GpuStream own;
  own.spin(100'000);
  const auto event = cuda_->record(own.stream()).value();
  EXPECT_FALSE(event->is_done().value());
  own.drain();
  EXPECT_TRUE(event->is_done().value());
}

TEST_F(CudaDriver, RefusesAStreamOfAnotherGpu) {
  const GpuStream other(1);
  CudaStream stream = other.stream();
  EXPECT_TRUE(cuda_->check(stream).ok());
  stream.device = 0;
  const Status status = cuda_->check(stream);
  EXPECT_EQ(status.error().code, ErrorCode::kDevice);
  EXPECT_EQ(
      status.error().message,
      "GPU 0 (fake GPU 0): recording an event in a stream: CUDA_ERROR_INVALID_HANDLE (invalid resource handle): is the "
      "stream another GPU's?");
  EXPECT_EQ(cuda_->check({.device = 7}).error().message,
            "GPU 7: looking for it: CUDA_ERROR_INVALID_DEVICE (invalid device ordinal)");
}

TEST_F(CudaDriver, RefusesAStreamThatIsCaptured) {
  GpuStream own;
  own.capture(true);
  const Status status = cuda_->check(own.stream());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(status.error().message, "GPU 0 (fake GPU 0): the stream is captured into a graph");
  own.capture(false);
  EXPECT_TRUE(cuda_->check(own.stream()).ok());
  make_cuda_fail("cuStreamIsCapturing:906:1");
  EXPECT_EQ(cuda_->check({}).error().code, ErrorCode::kInvalid);
}

TEST_F(CudaDriver, BreaksNothingThatIsCapturedMeanwhile) {
  GpuStream captured;
  const GpuStream own;
  GpuMemory memory(64);
  const Mapped host(4'096);
  captured.capture(true);
  {
    const auto pin = cuda_->pin(host.data(), 4'096);
    ASSERT_TRUE(pin.ok()) << pin.error().message;
    ASSERT_TRUE(cuda_->to_host({.host = host.data(), .device = memory.data(), .row = 64}, own.stream()).ok());
    const Status settled = settle(own.stream());
    EXPECT_TRUE(settled.ok()) << settled.error().message;
  }
  EXPECT_EQ(count_of(CudaCount::kBroken), 0U);
  const auto scope = cuda_->enter(0).value();
  std::uint64_t event = 0;
  ASSERT_EQ(fake::call("cuEventCreate", &event, 0U), 0);
  EXPECT_EQ(fake::call("cuEventQuery", event), 900) << "a thread's own calls are as they were";
  EXPECT_EQ(fake::call("cuEventDestroy_v2", event), 0);
  captured.capture(false);
}

TEST_F(CudaDriver, NamesTheGpuAndTheErrorOfACopy) {
  const GpuMemory memory(64);
  std::vector<char> host(128);
  const CudaCopy copy{.host = host.data(), .device = memory.data(), .row = 128};
  const Status past_its_end = cuda_->to_host(copy, {});
  EXPECT_EQ(past_its_end.error().code, ErrorCode::kDevice);
  EXPECT_EQ(past_its_end.error().message,
            "GPU 0 (fake GPU 0): copying 128 bytes to the host: CUDA_ERROR_INVALID_VALUE (invalid argument)");
  EXPECT_EQ(cuda_->to_device(copy, {}).error().message,
            "GPU 0 (fake GPU 0): copying 128 bytes from the host: CUDA_ERROR_INVALID_VALUE (invalid argument)");
}

TEST_F(CudaDriver, TellsOfAStreamThatHasFailed) {
  GpuMemory memory(64);
  const Mapped host(4'096);
  const auto pin = cuda_->pin(host.data(), 4'096).value();
  GpuStream own;
  make_cuda_fail("copy:700:1");
  const CudaCopy copy{.host = host.data(), .device = memory.data(), .row = 64};
  ASSERT_TRUE(cuda_->to_host(copy, own.stream()).ok());
  const auto event = cuda_->record(own.stream());
  own.drain();
  const Status failed = event.ok() ? settle(own.stream()) : Status(event.error());
  EXPECT_EQ(failed.error().code, ErrorCode::kDevice);
  EXPECT_NE(failed.error().message.find("CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"),
            std::string::npos)
      << failed.error().message;
  if (event.ok()) {
    EXPECT_EQ((*event)->is_done().error().code, ErrorCode::kDevice);
  }
}

TEST_F(CudaDriver, EntersTheContextOfAGpuAndLeavesIt) {
  {
    const auto first = cuda_->enter(0).value();
    const auto second = cuda_->enter(1).value();
    EXPECT_EQ(count_of(CudaCount::kContexts), 2U);
    std::uint64_t memory = 0;
    EXPECT_EQ(fake::call("cuMemAlloc_v2", &memory, std::size_t{64}), 0);
    EXPECT_EQ(cuda_->device_of(reinterpret_cast<const char*>(memory)).value(), 1);
    EXPECT_EQ(fake::call("cuMemFree_v2", memory), 0);
  }
  EXPECT_EQ(count_of(CudaCount::kContexts), 0U);
  EXPECT_EQ(cuda_->enter(7).error().code, ErrorCode::kDevice);
}

TEST_F(CudaDriver, HasNothingToDoForNoBytes) {
  const std::uint64_t before = count_of(CudaCount::kCopies);
  EXPECT_TRUE(cuda_->to_host({}, {}).ok());
  EXPECT_TRUE(cuda_->to_device({.row = 0, .rows = 5}, {}).ok());
  EXPECT_TRUE(cuda_->pin(nullptr, 0).ok());
  EXPECT_EQ(count_of(CudaCount::kCopies), before);
}

TEST_F(CudaDriver, IsUsedByManyThreadsAtOnce) {
  make_streams_late(100, 1);
  std::vector<std::thread> threads;
  for (int number = 0; number < 8; ++number) {
    threads.emplace_back([this, number] {
      GpuMemory memory(4'096, number % 2);
      const GpuStream own(number % 2);
      const Mapped host(4'096);
      for (unsigned seed = 1; seed <= 20; ++seed) {
        const std::string bytes = pattern_of(4'096, seed * 8 + static_cast<unsigned>(number));
        memory.poke(bytes);
        const auto pin = cuda_->pin(host.data(), 4'096);
        ASSERT_TRUE(pin.ok());
        ASSERT_EQ(cuda_->device_of(memory.data()).value(), number % 2);
        ASSERT_TRUE(cuda_->to_host({.host = host.data(), .device = memory.data(), .row = 4'096}, own.stream()).ok());
        ASSERT_TRUE(settle(own.stream()).ok());
        ASSERT_EQ(std::string(host.data(), 4'096), bytes);
      }
    });
  }
  for (std::thread& one : threads) one.join();
}

}  // namespace
}  // namespace monarch::tensor
