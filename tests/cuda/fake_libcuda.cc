// A driver of CUDA without a GPU, for what loads libcuda.so.1: the functions of cuda_own.h, those that a test wants
// beside them, and no more, so PyTorch does not run on it. It is found by LD_LIBRARY_PATH. What it does and refuses is
// told in fake_world.h.
//
// Most calls want a context of the calling thread's, and say 201 without one. Of the environment, read once:
//   FAKE_CUDA_LATE_US   how late a stream is at most, at each thing that it does (0)
//   FAKE_CUDA_SEED      of how late it is (1)
//   FAKE_CUDA_FAIL      cuInit:100:1,copy:700:5: the first cuInit answers 100, and the fifth copy fails in its stream
//   FAKE_CUDA_PAGEABLE  late: memory of the host that is not registered is read and written when its turn comes, too
//   FAKE_CUDA_DEVICE    the GPU of all memory (the context's)

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/cuda/fake_world.h"

using namespace monarch::tensor::own_cuda;
using fake_cuda::contexts;
using fake_cuda::current_device;
using fake_cuda::FakeEvent;
using fake_cuda::kContexts;
using fake_cuda::Memory;
using fake_cuda::World;

namespace {

constexpr int kVersion = 13'000;
constexpr Code kCaptureUnsupported = 900;

struct ErrorWord {
  Code code;
  const char* name;
  const char* words;
};

constexpr std::array<ErrorWord, 15> kWords{{
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kAlreadyRegistered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {kNotRegistered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {kCaptureImplicit, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
}};

// What a call answers before it looks at anything else.
Code state_of(const char* name) {
  if (const Code code = World::it().scripted(name)) return code;
  if (const Code code = World::it().sticky) return code;
  return World::it().begun ? kSuccess : kNotInitialized;
}

Code state_in_context(const char* name) {
  if (const Code code = state_of(name)) return code;
  return contexts.empty() ? kInvalidContext : kSuccess;
}

// The same of what is not to be called while a graph is captured.
Code state_beside_captures(const char* name) {
  if (const Code code = state_in_context(name)) return code;
  if (World::it().captures == 0 || fake_cuda::capture_mode == kCaptureRelaxed) return kSuccess;
  ++World::it().counts.broken;
  return kCaptureUnsupported;
}

Code copy_rows(const fake_cuda::Rows& rows, Stream handle) {
  const auto stream = World::it().stream(handle, current_device());
  if (!stream) return kInvalidHandle;
  if (stream->captured) return kCaptureUnsupported;
  return World::it().copy(rows, *stream);
}

std::shared_ptr<FakeEvent> event_of(Event event) {
  const std::lock_guard lock(World::it().mutex);
  const auto found = World::it().events.find(reinterpret_cast<std::uint64_t>(event));
  return found == World::it().events.end() ? nullptr : found->second;
}

}  // namespace

extern "C" {

Code cuInit(unsigned) {
  if (const Code code = World::it().scripted("cuInit")) return code;
  World::it().begun = true;
  return kSuccess;
}

Code cuDriverGetVersion(int* version) {
  *version = kVersion;
  return kSuccess;
}

Code cuGetErrorName(Code code, const char** name) {
  const auto* const found =
      std::find_if(kWords.begin(), kWords.end(), [&](const ErrorWord& one) { return one.code == code; });
  *name = found == kWords.end() ? nullptr : found->name;
  return found == kWords.end() ? kInvalidValue : kSuccess;
}

Code cuGetErrorString(Code code, const char** words) {
  const auto* const found =
      std::find_if(kWords.begin(), kWords.end(), [&](const ErrorWord& one) { return one.code == code; });
  *words = found == kWords.end() ? nullptr : found->words;
  return found == kWords.end() ? kInvalidValue : kSuccess;
}

Code cuDeviceGetCount(int* count) {
  if (const Code code = state_of("cuDeviceGetCount")) return code;
  *count = fake_cuda::kDevices;
  return kSuccess;
}

Code cuDeviceGet(Device* device, int ordinal) {
  if (const Code code = state_of("cuDeviceGet")) return code;
  if (ordinal < 0 || ordinal >= fake_cuda::kDevices) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

Code cuDeviceGetName(char* name, int room, Device device) {
  if (!World::it().begun) return kNotInitialized;
  (void)std::snprintf(name, static_cast<std::size_t>(room), "fake GPU %d", device);
  return kSuccess;
}

Code cuDeviceGetAttribute(int* value, int attribute, Device) {
  constexpr int kReadOnlyRegister = 113;
  *value = attribute == kMaxPitch ? int{fake_cuda::kMaxPitch} : 1;
  if (attribute == kReadOnlyRegister) *value = 0;  // as on x86
  return state_of("cuDeviceGetAttribute");
}

Code cuDevicePrimaryCtxRetain(Context* context, Device device) {
  if (const Code code = state_of("cuDevicePrimaryCtxRetain")) return code;
  if (device < 0 || device >= fake_cuda::kDevices) return kInvalidDevice;
  const std::lock_guard lock(World::it().mutex);
  ++World::it().retained[device];
  *context = reinterpret_cast<Context>(kContexts + static_cast<std::uint64_t>(device));
  return kSuccess;
}

Code cuDevicePrimaryCtxRelease_v2(Device device) {
  const std::lock_guard lock(World::it().mutex);
  if (World::it().retained[device] == 0) return kInvalidContext;
  --World::it().retained[device];
  return kSuccess;
}

Code cuCtxPushCurrent_v2(Context context) {
  if (const Code code = World::it().scripted("cuCtxPushCurrent_v2")) return code;
  const std::lock_guard lock(World::it().mutex);
  const auto device = static_cast<int>(reinterpret_cast<std::uint64_t>(context) - kContexts);
  if (World::it().retained[device] == 0) return kInvalidContext;
  contexts.push_back(context);
  return kSuccess;
}

Code cuCtxPopCurrent_v2(Context* context) {
  if (contexts.empty()) return kInvalidContext;
  if (context != nullptr) *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}

Code cuPointerGetAttributes(unsigned count, int* attributes, void** values, Address at) {
  if (const Code code = state_in_context("cuPointerGetAttributes")) return code;
  const std::lock_guard lock(World::it().mutex);
  const Memory* const memory = World::it().memory_at(at, 1);
  const bool pinned = memory == nullptr && World::it().is_pinned(at);
  for (unsigned i = 0; i < count; ++i) {  // zeros, and success, for a pointer that it does not know
    switch (attributes[i]) {
      case kPointerMemoryType:
        *static_cast<unsigned*>(values[i]) = memory != nullptr ? kMemoryOfDevice : pinned ? kMemoryOfHost : 0;
        break;
      case kPointerOrdinal: *static_cast<int*>(values[i]) = memory != nullptr ? memory->device : pinned ? 0 : -2; break;
      case kPointerIsManaged: *static_cast<unsigned*>(values[i]) = memory != nullptr && memory->managed ? 1 : 0; break;
      default: return kInvalidValue;
    }
  }
  return kSuccess;
}

Code cuMemAlloc_v2(Address* at, std::size_t bytes) {
  if (const Code code = state_in_context("cuMemAlloc_v2")) return code;
  return World::it().allocate(*at, bytes, current_device(), false);
}

Code cuMemAllocManaged(Address* at, std::size_t bytes, unsigned) {
  if (const Code code = state_in_context("cuMemAllocManaged")) return code;
  return World::it().allocate(*at, bytes, current_device(), true);
}

Code cuMemFree_v2(Address at) { return World::it().release(at); }

Code cuMemHostRegister_v2(void* start, std::size_t bytes, unsigned flags) {
  if (const Code code = state_beside_captures("cuMemHostRegister_v2")) return code;
  if ((flags & kRegisterReadOnly) != 0) return kNotSupported;
  return World::it().register_host(static_cast<char*>(start), bytes);
}

Code cuMemHostUnregister(void* start) {
  if (contexts.empty()) return kInvalidContext;
  return World::it().unregister_host(static_cast<char*>(start));
}

Code cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, Stream stream) {
  if (const Code code = state_in_context("cuMemcpyDtoHAsync_v2")) return code;
  return copy_rows({.to_host = true, .host = static_cast<char*>(to), .device = from, .width = bytes}, stream);
}

Code cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, Stream stream) {
  if (const Code code = state_in_context("cuMemcpyHtoDAsync_v2")) return code;
  char* const host = static_cast<char*>(const_cast<void*>(from));
  return copy_rows({.to_host = false, .host = host, .device = to, .width = bytes}, stream);
}

Code cuMemcpy2DAsync_v2(const Copy2D* copy, Stream stream) {
  if (const Code code = state_in_context("cuMemcpy2DAsync_v2")) return code;
  const Copy2D& one = *copy;
  fake_cuda::Rows rows{.width = one.width, .height = one.height};
  rows.to_host = one.source_type == kMemoryOfDevice && one.target_type == kMemoryOfHost;
  if (!rows.to_host && !(one.source_type == kMemoryOfHost && one.target_type == kMemoryOfDevice)) return kInvalidValue;
  const std::size_t source = one.source_y * one.source_pitch + one.source_x;
  const std::size_t target = one.target_y * one.target_pitch + one.target_x;
  rows.device = rows.to_host ? one.source_device + source : one.target_device + target;
  rows.device_pitch = rows.to_host ? one.source_pitch : one.target_pitch;
  rows.host_pitch = rows.to_host ? one.target_pitch : one.source_pitch;
  rows.host = rows.to_host ? static_cast<char*>(one.target_host) + target
                           : static_cast<char*>(const_cast<void*>(one.source_host)) + source;
  if (rows.width > std::min(rows.device_pitch, rows.host_pitch)) return kInvalidValue;
  if (std::max(rows.device_pitch, rows.host_pitch) > fake_cuda::kMaxPitch) return kInvalidValue;
  return copy_rows(rows, stream);
}

Code cuEventCreate(Event* event, unsigned) {
  if (const Code code = state_in_context("cuEventCreate")) return code;
  const std::lock_guard lock(World::it().mutex);
  auto made = std::make_shared<FakeEvent>(current_device());
  *event = reinterpret_cast<Event>(made.get());
  World::it().events[reinterpret_cast<std::uint64_t>(made.get())] = made;
  return kSuccess;
}

Code cuEventRecord(Event event, Stream handle) {
  if (const Code code = state_in_context("cuEventRecord")) return code;
  const auto real = event_of(event);
  const auto stream = World::it().stream(handle, current_device());
  if (!real || !stream || real->device != stream->device) return kInvalidHandle;
  if (stream->captured) return kCaptureUnsupported;
  stream->enqueue([real, mine = ++real->recorded] { real->done = mine; });
  return kSuccess;
}

Code cuEventQuery(Event event) {
  if (const Code code = state_beside_captures("cuEventQuery")) return code;
  const auto real = event_of(event);
  if (!real) return kInvalidHandle;
  return real->done == real->recorded ? kSuccess : kNotReady;
}

Code cuEventDestroy_v2(Event event) {
  if (contexts.empty()) return kInvalidContext;
  const std::lock_guard lock(World::it().mutex);
  return World::it().events.erase(reinterpret_cast<std::uint64_t>(event)) == 1 ? kSuccess : kInvalidHandle;
}

Code cuStreamIsCapturing(Stream handle, int* status) {
  if (const Code code = state_in_context("cuStreamIsCapturing")) return code;
  const auto stream = World::it().stream(handle, current_device());
  if (!stream) return kInvalidHandle;
  *status = stream->captured ? 1 : 0;
  return kSuccess;
}

Code cuThreadExchangeStreamCaptureMode(int* mode) {
  if (const Code code = state_of("cuThreadExchangeStreamCaptureMode")) return code;
  std::swap(*mode, fake_cuda::capture_mode);
  return kSuccess;
}

Code cuStreamCreate(Stream* stream, unsigned) {
  if (const Code code = state_in_context("cuStreamCreate")) return code;
  *stream = World::it().make_stream(current_device());
  return kSuccess;
}

// As a real one does not, it waits until nothing is queued.
Code cuStreamDestroy_v2(Stream stream) { return World::it().end_stream(stream); }

// In the stream's turn, in a thread of the driver's.
Code cuLaunchHostFunc(Stream handle, void (*call)(void*), void* with) {
  if (const Code code = state_in_context("cuLaunchHostFunc")) return code;
  const auto stream = World::it().stream(handle, current_device());
  if (!stream) return kInvalidHandle;
  stream->enqueue([call, with] { call(with); });
  return kSuccess;
}

}  // extern "C"
