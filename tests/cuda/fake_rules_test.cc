// The fake ends a process that does what the driver would take without a word, and that goes wrong one day.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>

#include "tests/cuda/fake_gpu.h"
#include "transport/tensor/cuda/load.h"

namespace monarch::tensor {
namespace {

constexpr std::uint64_t kPage = 4'096;

char* map_page() {
  return static_cast<char*>(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

// A copy that waits behind what takes a minute.
void enqueue_behind_a_minute(Cuda& cuda, GpuStream& stream, const GpuMemory& memory, char* host) {
  stream.spin(60'000'000);
  EXPECT_TRUE(cuda.to_host({.host = host, .device = memory.data(), .row = kPage}, stream.stream()).ok());
}

class FakeCudaRules : public ::testing::Test {
 protected:
  FakeCudaRules() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(FakeCudaRules, EndAProcessThatFreesMemoryUnderACopy) {
  const auto ends = [] {
    const auto cuda = load_libcuda().value();
    char* const host = map_page();
    const auto pin = cuda->pin(host, kPage).value();
    GpuStream stream;
    const GpuMemory memory(kPage);  // it is freed first
    enqueue_behind_a_minute(*cuda, stream, memory, host);
  };
  EXPECT_DEATH(ends(), "fake libcuda: memory of a GPU was freed while a copy of it is queued");
}

TEST_F(FakeCudaRules, EndAProcessThatUnregistersMemoryUnderACopy) {
  const auto ends = [] {
    const auto cuda = load_libcuda().value();
    char* const host = map_page();
    GpuStream stream;
    const GpuMemory memory(kPage);
    const auto pin = cuda->pin(host, kPage).value();  // it ends first
    enqueue_behind_a_minute(*cuda, stream, memory, host);
  };
  EXPECT_DEATH(ends(), "fake libcuda: memory of the host was unregistered while a copy of it is queued");
}

TEST_F(FakeCudaRules, EndAProcessThatUnmapsMemoryBeforeItUnregistersIt) {
  const auto ends = [] {
    const auto cuda = load_libcuda().value();
    char* const host = map_page();
    const auto pin = cuda->pin(host, kPage).value();
    (void)::munmap(host, kPage);
  };
  EXPECT_DEATH(ends(), "fake libcuda: memory of the host was unmapped before it was unregistered");
}

TEST_F(FakeCudaRules, EndAProcessThatTouchesMemoryOfAGpu) {
  const auto ends = [] {
    (void)load_libcuda().value();
    const GpuMemory memory(kPage);
    *static_cast<volatile char*>(memory.data()) = 1;
  };
  EXPECT_DEATH(ends(), "");
}

}  // namespace
}  // namespace monarch::tensor
