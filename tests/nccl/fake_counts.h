#pragma once

// What tests ask of the fake libnccl.so.2 (fake_libnccl.cc), beside what NCCL has. Found by name in the library that is
// loaded, for a test does not link it.
//
// Thread: any.

#include <dlfcn.h>

#include <cstdint>

namespace monarch::fake_nccl {

// How many communicators this process has begun, finalized, and aborted.
using Count = int (*)();
inline constexpr const char* kBegun = "fakeNcclBegun";
inline constexpr const char* kFinalized = "fakeNcclFinalized";
inline constexpr const char* kAborted = "fakeNcclAborted";
// The GPU whose context is current in this thread; -1: none. From the first call on NCCL's calls need one.
using SetContext = void (*)(int device);
inline constexpr const char* kSetContext = "fakeNcclSetContext";
// How much is enqueued on a stream, and how much of it has ended.
using OfStream = std::uint64_t (*)(std::uint64_t stream);
inline constexpr const char* kEnqueued = "fakeNcclEnqueued";
inline constexpr const char* kEnded = "fakeNcclEnded";

// Nothing: it is not the fake that is loaded.
template <class Function>
Function find(const char* name) {
  void* const library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(library, name));
}

}  // namespace monarch::fake_nccl
