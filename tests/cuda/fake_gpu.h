#pragma once

// The fake driver as a test uses it beside load_libcuda(): memory of a GPU, streams that are late, and what became of
// it all. The program is run with LD_LIBRARY_PATH of the fake (fake_cuda_folder, in meson).
//
// Thread: any. Lifetime: memory and streams end before the process does.

#include <dlfcn.h>

#include <cstdint>
#include <string>
#include <vector>

#include "transport/base/assert.h"
#include "transport/tensor/cuda/driver.h"

namespace monarch::tensor {

// Numbers of fakeCount().
enum class CudaCount : int { kCopies, kBytes, kRegistered, kPinned, kEvents, kContexts, kRetained, kBroken };

namespace fake {

template <class Function>
Function* function(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  MONARCH_ASSERT(library != nullptr);
  auto* const found = reinterpret_cast<Function*>(::dlsym(library, name));
  MONARCH_ASSERT(found != nullptr);  // it is the fake that was found
  return found;
}

template <class... Arguments>
int call(const char* name, Arguments... arguments) {
  return function<int(Arguments...)>(name)(arguments...);
}

inline void* handle(const CudaStream& stream) { return reinterpret_cast<void*>(stream.handle); }

// Its functions of a test need cuInit and a context of their own thread.
class Context {
 public:
  explicit Context(int device) {
    void* context = nullptr;
    MONARCH_ASSERT(call("cuInit", 0U) == 0);
    MONARCH_ASSERT(call("cuDevicePrimaryCtxRetain", &context, device) == 0);
    MONARCH_ASSERT(call("cuCtxPushCurrent_v2", context) == 0);
    device_ = device;
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    void* popped = nullptr;
    (void)call("cuCtxPopCurrent_v2", &popped);
    (void)call("cuDevicePrimaryCtxRelease_v2", device_);
  }

 private:
  int device_ = 0;
};

}  // namespace fake

inline std::uint64_t count_of(CudaCount which) {
  return fake::function<std::uint64_t(int)>("fakeCount")(static_cast<int>(which));
}

// From now on: streams are so late at most, by this seed.
inline void make_streams_late(unsigned us, unsigned seed) {
  fake::function<void(unsigned, unsigned)>("fakeLate")(us, seed);
}
// name:code:nth, as FAKE_CUDA_FAIL has it.
inline void make_cuda_fail(const char* script) { fake::function<void(const char*)>("fakeFail")(script); }
inline void heal_cuda() { fake::function<void()>("fakeHeal")(); }
// Memory of the host that is not registered is read and written late, too.
inline void make_pageable_late(bool late) { fake::function<void(int)>("fakePageableLate")(late ? 1 : 0); }

class GpuMemory {
 public:
  explicit GpuMemory(std::uint64_t bytes, int device = 0, bool managed = false) : bytes_(bytes) {
    const fake::Context context(device);
    const int code = managed ? fake::call("cuMemAllocManaged", &at_, std::size_t{bytes}, 1U)
                             : fake::call("cuMemAlloc_v2", &at_, std::size_t{bytes});
    MONARCH_ASSERT(code == 0);
  }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  ~GpuMemory() { (void)fake::call("cuMemFree_v2", at_); }

  char* data() const { return reinterpret_cast<char*>(at_); }
  std::uint64_t size() const { return bytes_; }
  // What is there now, whatever is queued.
  std::string peek() const {
    std::string seen(bytes_, '\0');
    MONARCH_ASSERT(fake::call("fakePeek", static_cast<void*>(seen.data()), at_, std::size_t{bytes_}) == 0);
    return seen;
  }
  void poke(const std::string& bytes, std::uint64_t at = 0) {
    MONARCH_ASSERT(fake::call("fakePoke", at_ + at, static_cast<const void*>(bytes.data()), bytes.size()) == 0);
  }
  // As a kernel that writes, when the stream comes to it.
  void fill(const CudaStream& stream, char byte, std::uint64_t from, std::uint64_t bytes) {
    const fake::Context context(stream.device);
    MONARCH_ASSERT(fake::call("fakeFill", fake::handle(stream), at_ + from, int{byte}, std::size_t{bytes}) == 0);
  }
  void fill(const CudaStream& stream, char byte) { fill(stream, byte, 0, bytes_); }

 private:
  std::uint64_t at_ = 0;
  std::uint64_t bytes_ = 0;
};

class GpuStream {
 public:
  explicit GpuStream(int device = 0) {
    const fake::Context context(device);
    void* made = nullptr;
    MONARCH_ASSERT(fake::call("fakeStreamMake", &made) == 0);
    stream_ = {.device = device, .handle = reinterpret_cast<std::uint64_t>(made)};
  }
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;
  // Waits until nothing is queued.
  ~GpuStream() { (void)fake::call("fakeStreamEnd", fake::handle(stream_)); }

  const CudaStream& stream() const { return stream_; }
  void spin(unsigned us) { MONARCH_ASSERT(fake::call("fakeSpin", fake::handle(stream_), us) == 0); }
  void drain() { (void)fake::call("fakeDrain", fake::handle(stream_)); }  // its code is the driver's state
  void capture(bool on) { MONARCH_ASSERT(fake::call("fakeCapture", fake::handle(stream_), on ? 1 : 0) == 0); }

 private:
  CudaStream stream_;
};

}  // namespace monarch::tensor
