#pragma once

// FakeGpu: what a test does on the GPUs of the fake driver (tests/cuda), as a program would by kernels: memory, streams,
// and writes that come when their stream comes to them. The driver is the one that the product has loaded.
//
// Thread: the test's.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "transport/tensor/cuda/load.h"

namespace monarch::tensor {

class FakeGpu {
 public:
  static FakeGpu& it() {
    static FakeGpu one;
    return one;
  }

  Cuda& cuda() { return *cuda_; }
  const SharedCuda& shared() const { return cuda_; }

  std::uint64_t allocate(std::size_t bytes, int device = 0) {
    std::uint64_t at = 0;
    in(device, [&] { EXPECT_EQ(call<int(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(&at, bytes), 0); });
    return at;
  }
  void release(std::uint64_t at) { EXPECT_EQ(call<int(std::uint64_t)>("cuMemFree_v2")(at), 0); }
  std::uint64_t make_stream(int device = 0) {
    std::uint64_t stream = 0;
    in(device, [&] { EXPECT_EQ(call<int(std::uint64_t*)>("fakeStreamMake")(&stream), 0); });
    return stream;
  }
  void end_stream(std::uint64_t stream) { EXPECT_EQ(call<int(std::uint64_t)>("fakeStreamEnd")(stream), 0); }
  void fill(std::uint64_t stream, std::uint64_t at, int byte, std::size_t bytes) {
    EXPECT_EQ(call<int(std::uint64_t, std::uint64_t, int, std::size_t)>("fakeFill")(stream, at, byte, bytes), 0);
  }
  void spin(std::uint64_t stream, unsigned us) {
    EXPECT_EQ(call<int(std::uint64_t, unsigned)>("fakeSpin")(stream, us), 0);
  }
  void drain(std::uint64_t stream) { (void)call<int(std::uint64_t)>("fakeDrain")(stream); }
  void capture(std::uint64_t stream, bool on) {
    EXPECT_EQ(call<int(std::uint64_t, int)>("fakeCapture")(stream, on ? 1 : 0), 0);
  }
  // At once, whatever is queued.
  std::vector<std::uint8_t> peek(std::uint64_t at, std::size_t bytes) {
    std::vector<std::uint8_t> seen(bytes);
    EXPECT_EQ(call<int(void*, std::uint64_t, std::size_t)>("fakePeek")(seen.data(), at, bytes), 0);
    return seen;
  }
  // Each thing that a stream does begins up to so much later.
  void be_late(unsigned us, unsigned seed) { call<void(unsigned, unsigned)>("fakeLate")(us, seed); }
  void be_late_with_pageable(bool late) { call<void(int)>("fakePageableLate")(late ? 1 : 0); }
  // "copy:700:1": the next copy fails in its stream.
  void fail(const std::string& script) { call<void(const char*)>("fakeFail")(script.c_str()); }
  void heal() { call<void()>("fakeHeal")(); }
  std::uint64_t registered_bytes() { return call<std::uint64_t(int)>("fakeCount")(3); }
  std::uint64_t copies() { return call<std::uint64_t(int)>("fakeCount")(0); }

 private:
  FakeGpu() {
    auto loaded = load_libcuda();
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    cuda_ = *loaded;
    library_ = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    EXPECT_NE(library_, nullptr);
  }

  template <class Function>
  Function* call(const char* name) {
    auto* const found = reinterpret_cast<Function*>(::dlsym(library_, name));
    EXPECT_NE(found, nullptr) << name;
    return found;
  }
  template <class Run>
  void in(int device, const Run& run) {
    void* context = nullptr;
    EXPECT_EQ(call<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, device), 0);
    EXPECT_EQ(call<int(void*)>("cuCtxPushCurrent_v2")(context), 0);
    run();
    EXPECT_EQ(call<int(void**)>("cuCtxPopCurrent_v2")(&context), 0);
    EXPECT_EQ(call<int(int)>("cuDevicePrimaryCtxRelease_v2")(device), 0);
  }

  SharedCuda cuda_;
  void* library_ = nullptr;
};

}  // namespace monarch::tensor
