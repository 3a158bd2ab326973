#pragma once

// The driver's functions and constants that are used here, declared anew: neither a build nor a machine needs NVIDIA's
// headers. tests/cuda holds them against those headers where there are some. Names that end in _v2 are frozen by
// NVIDIA; the same without an end is another function, mostly.
//
// Thread: values.

#include <cstddef>
#include <cstdint>

namespace monarch::tensor::own_cuda {

using Code = int;               // CUresult
using Device = int;             // CUdevice
using Address = std::uint64_t;  // CUdeviceptr
struct ContextTag;
using Context = ContextTag*;  // CUcontext
struct StreamTag;
using Stream = StreamTag*;  // CUstream
struct EventTag;
using Event = EventTag*;  // CUevent

// CUresult
inline constexpr Code kSuccess = 0;
inline constexpr Code kInvalidValue = 1;
inline constexpr Code kOutOfMemory = 2;
inline constexpr Code kNotInitialized = 3;
inline constexpr Code kDeinitialized = 4;
inline constexpr Code kStubLibrary = 34;
inline constexpr Code kNoDevice = 100;
inline constexpr Code kInvalidDevice = 101;
inline constexpr Code kInvalidContext = 201;
inline constexpr Code kEccUncorrectable = 214;
inline constexpr Code kNvlinkUncorrectable = 220;
inline constexpr Code kInvalidHandle = 400;
inline constexpr Code kNotReady = 600;
inline constexpr Code kIllegalAddress = 700;
inline constexpr Code kLaunchTimeout = 702;
inline constexpr Code kContextIsDestroyed = 709;
inline constexpr Code kAssert = 710;
inline constexpr Code kAlreadyRegistered = 712;
inline constexpr Code kNotRegistered = 713;
inline constexpr Code kHardwareStackError = 714;
inline constexpr Code kIllegalInstruction = 715;
inline constexpr Code kMisalignedAddress = 716;
inline constexpr Code kInvalidAddressSpace = 717;
inline constexpr Code kInvalidPc = 718;
inline constexpr Code kLaunchFailed = 719;
inline constexpr Code kNotSupported = 801;
inline constexpr Code kCaptureImplicit = 906;

// CUmemorytype
inline constexpr unsigned kMemoryOfHost = 1;
inline constexpr unsigned kMemoryOfDevice = 2;

// CUdevice_attribute
inline constexpr int kMaxPitch = 11;

// CUpointer_attribute
inline constexpr int kPointerMemoryType = 2;
inline constexpr int kPointerIsManaged = 8;
inline constexpr int kPointerOrdinal = 9;

// CUstreamCaptureMode
inline constexpr int kCaptureRelaxed = 2;

inline constexpr unsigned kRegisterPortable = 1;
inline constexpr unsigned kRegisterReadOnly = 8;
inline constexpr unsigned kEventDisableTiming = 2;

// CUDA_MEMCPY2D
struct Copy2D {
  std::size_t source_x = 0;  // bytes
  std::size_t source_y = 0;
  unsigned source_type = 0;
  const void* source_host = nullptr;
  Address source_device = 0;
  void* source_array = nullptr;
  std::size_t source_pitch = 0;
  std::size_t target_x = 0;  // bytes
  std::size_t target_y = 0;
  unsigned target_type = 0;
  void* target_host = nullptr;
  Address target_device = 0;
  void* target_array = nullptr;
  std::size_t target_pitch = 0;
  std::size_t width = 0;  // bytes
  std::size_t height = 0;
};

struct Functions {
  Code (*init)(unsigned flags) = nullptr;
  Code (*driver_version)(int* version) = nullptr;
  Code (*error_name)(Code code, const char** name) = nullptr;
  Code (*error_string)(Code code, const char** words) = nullptr;
  Code (*device_get)(Device* device, int ordinal) = nullptr;
  Code (*device_attribute)(int* value, int attribute, Device device) = nullptr;
  Code (*device_name)(char* name, int room, Device device) = nullptr;
  Code (*primary_retain)(Context* context, Device device) = nullptr;
  Code (*primary_release)(Device device) = nullptr;
  Code (*push)(Context context) = nullptr;
  Code (*pop)(Context* context) = nullptr;
  Code (*pointer_attributes)(unsigned count, int* attributes, void** values, Address at) = nullptr;
  Code (*host_register)(void* start, std::size_t bytes, unsigned flags) = nullptr;
  Code (*host_unregister)(void* start) = nullptr;
  Code (*to_host)(void* to, Address from, std::size_t bytes, Stream stream) = nullptr;
  Code (*to_device)(Address to, const void* from, std::size_t bytes, Stream stream) = nullptr;
  Code (*copy_2d)(const Copy2D* copy, Stream stream) = nullptr;
  Code (*event_create)(Event* event, unsigned flags) = nullptr;
  Code (*event_record)(Event event, Stream stream) = nullptr;
  Code (*event_query)(Event event) = nullptr;
  Code (*event_destroy)(Event event) = nullptr;
  Code (*stream_is_capturing)(Stream stream, int* status) = nullptr;
  Code (*exchange_capture_mode)(int* mode) = nullptr;
};

}  // namespace monarch::tensor::own_cuda

// A macro, for the loader and the test of agreement need the same pairs, the one as text, the other as names:
// each(of Functions, of the driver).
#define MONARCH_CUDA_FUNCTIONS(each)                                                                                  \
  each(init, cuInit) each(driver_version, cuDriverGetVersion) each(error_name, cuGetErrorName)                        \
      each(error_string, cuGetErrorString) each(device_get, cuDeviceGet) each(device_attribute, cuDeviceGetAttribute) \
          each(device_name, cuDeviceGetName) each(primary_retain, cuDevicePrimaryCtxRetain)                           \
              each(primary_release, cuDevicePrimaryCtxRelease_v2) each(push, cuCtxPushCurrent_v2)                     \
                  each(pop, cuCtxPopCurrent_v2) each(pointer_attributes, cuPointerGetAttributes)                      \
                      each(host_register, cuMemHostRegister_v2) each(host_unregister, cuMemHostUnregister)            \
                          each(to_host, cuMemcpyDtoHAsync_v2) each(to_device, cuMemcpyHtoDAsync_v2)                   \
                              each(copy_2d, cuMemcpy2DAsync_v2) each(event_create, cuEventCreate)                     \
                                  each(event_record, cuEventRecord) each(event_query, cuEventQuery)                   \
                                      each(event_destroy, cuEventDestroy_v2)                                          \
                                          each(stream_is_capturing, cuStreamIsCapturing)                              \
                                              each(exchange_capture_mode, cuThreadExchangeStreamCaptureMode)
