// Our declarations of the driver and of NCCL against NVIDIA's headers: constants, sizes, offsets, signatures. It
// compiles, or the compiler says what differs. agreement_test.py finds the headers; WITH_CUDA and WITH_NCCL say which
// there are.

#include <cstddef>
#include <type_traits>

namespace {

// A type of ours stands for one of theirs: both are nothing, pointers, or classes, or numbers and enumerations of one
// size.
template <class Ours, class Theirs>
constexpr bool stands_for() {
  if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
    return std::is_void_v<Ours> && std::is_void_v<Theirs>;
  } else {
    return std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> && std::is_class_v<Ours> == std::is_class_v<Theirs> &&
           std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
  }
}

template <class Ours, class Theirs>
struct SameCall : std::false_type {};
template <class OurResult, class... Ours, class TheirResult, class... Theirs>
struct SameCall<OurResult (*)(Ours...), TheirResult (*)(Theirs...)> {
  static constexpr bool check() {
    if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
      return false;
    } else {
      return stands_for<OurResult, TheirResult>() && (stands_for<Ours, Theirs>() && ...);
    }
  }
  static constexpr bool value = check();
};

}  // namespace

#define CALL(ours, theirs) \
  static_assert(SameCall<decltype(OURS::Functions::ours), decltype(&::theirs)>::value, #theirs);
#define VALUE(ours, theirs) \
  static_assert(static_cast<long long>(OURS::ours) == static_cast<long long>(theirs), #theirs);
#define FIELD(ours, our_name, theirs, their_name)                                             \
  static_assert(offsetof(OURS::ours, our_name) == offsetof(theirs, their_name), #their_name); \
  static_assert(sizeof(OURS::ours::our_name) == sizeof(theirs::their_name), #their_name);

#ifdef WITH_CUDA
#include <cuda.h>

#include "transport/tensor/cuda/cuda_own.h"

#define OURS monarch::tensor::own_cuda
MONARCH_CUDA_FUNCTIONS(CALL)

static_assert(sizeof(OURS::Copy2D) == sizeof(CUDA_MEMCPY2D), "CUDA_MEMCPY2D");
FIELD(Copy2D, source_x, CUDA_MEMCPY2D, srcXInBytes)
FIELD(Copy2D, source_y, CUDA_MEMCPY2D, srcY)
FIELD(Copy2D, source_type, CUDA_MEMCPY2D, srcMemoryType)
FIELD(Copy2D, source_host, CUDA_MEMCPY2D, srcHost)
FIELD(Copy2D, source_device, CUDA_MEMCPY2D, srcDevice)
FIELD(Copy2D, source_array, CUDA_MEMCPY2D, srcArray)
FIELD(Copy2D, source_pitch, CUDA_MEMCPY2D, srcPitch)
FIELD(Copy2D, target_x, CUDA_MEMCPY2D, dstXInBytes)
FIELD(Copy2D, target_y, CUDA_MEMCPY2D, dstY)
FIELD(Copy2D, target_type, CUDA_MEMCPY2D, dstMemoryType)
FIELD(Copy2D, target_host, CUDA_MEMCPY2D, dstHost)
FIELD(Copy2D, target_device, CUDA_MEMCPY2D, dstDevice)
FIELD(Copy2D, target_array, CUDA_MEMCPY2D, dstArray)
FIELD(Copy2D, target_pitch, CUDA_MEMCPY2D, dstPitch)
FIELD(Copy2D, width, CUDA_MEMCPY2D, WidthInBytes)
FIELD(Copy2D, height, CUDA_MEMCPY2D, Height)

VALUE(kSuccess, CUDA_SUCCESS)
VALUE(kInvalidValue, CUDA_ERROR_INVALID_VALUE)
VALUE(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY)
VALUE(kNotInitialized, CUDA_ERROR_NOT_INITIALIZED)
VALUE(kDeinitialized, CUDA_ERROR_DEINITIALIZED)
VALUE(kStubLibrary, CUDA_ERROR_STUB_LIBRARY)
VALUE(kNoDevice, CUDA_ERROR_NO_DEVICE)
VALUE(kInvalidDevice, CUDA_ERROR_INVALID_DEVICE)
VALUE(kInvalidContext, CUDA_ERROR_INVALID_CONTEXT)
VALUE(kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE)
VALUE(kNvlinkUncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE)
VALUE(kInvalidHandle, CUDA_ERROR_INVALID_HANDLE)
VALUE(kNotReady, CUDA_ERROR_NOT_READY)
VALUE(kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS)
VALUE(kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT)
VALUE(kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED)
VALUE(kAssert, CUDA_ERROR_ASSERT)
VALUE(kAlreadyRegistered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
VALUE(kNotRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)
VALUE(kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR)
VALUE(kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION)
VALUE(kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS)
VALUE(kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE)
VALUE(kInvalidPc, CUDA_ERROR_INVALID_PC)
VALUE(kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED)
VALUE(kNotSupported, CUDA_ERROR_NOT_SUPPORTED)
VALUE(kCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
VALUE(kMemoryOfHost, CU_MEMORYTYPE_HOST)
VALUE(kMemoryOfDevice, CU_MEMORYTYPE_DEVICE)
VALUE(kMaxPitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH)
VALUE(kPointerMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
VALUE(kPointerIsManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED)
VALUE(kPointerOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
VALUE(kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED)
VALUE(kRegisterPortable, CU_MEMHOSTREGISTER_PORTABLE)
VALUE(kRegisterReadOnly, CU_MEMHOSTREGISTER_READ_ONLY)
VALUE(kEventDisableTiming, CU_EVENT_DISABLE_TIMING)
#undef OURS
#endif

#ifdef WITH_NCCL
#include <nccl.h>

#include "transport/tensor/nccl/nccl_own.h"

#define OURS monarch::tensor::own_nccl
MONARCH_NCCL_FUNCTIONS(CALL)

static_assert(sizeof(OURS::Id) == sizeof(ncclUniqueId), "ncclUniqueId");
FIELD(Config, size, ncclConfig_t, size)
FIELD(Config, magic, ncclConfig_t, magic)
FIELD(Config, version, ncclConfig_t, version)
FIELD(Config, blocking, ncclConfig_t, blocking)
constexpr ncclConfig_t kTheirDefaults = NCCL_CONFIG_INITIALIZER;
static_assert(kTheirDefaults.magic == OURS::Config{}.magic, "the magic of ncclConfig_t");

VALUE(kSuccess, ncclSuccess)
VALUE(kUnhandledCudaError, ncclUnhandledCudaError)
VALUE(kSystemError, ncclSystemError)
VALUE(kInternalError, ncclInternalError)
VALUE(kInvalidArgument, ncclInvalidArgument)
VALUE(kInvalidUsage, ncclInvalidUsage)
VALUE(kRemoteError, ncclRemoteError)
VALUE(kInProgress, ncclInProgress)
VALUE(kInt8, ncclInt8)
VALUE(kUint8, ncclUint8)
VALUE(kInt32, ncclInt32)
VALUE(kUint32, ncclUint32)
VALUE(kInt64, ncclInt64)
VALUE(kUint64, ncclUint64)
VALUE(kFloat16, ncclFloat16)
VALUE(kFloat32, ncclFloat32)
VALUE(kFloat64, ncclFloat64)
VALUE(kBfloat16, ncclBfloat16)
#if NCCL_VERSION_CODE >= 22400
VALUE(kFloat8e4m3, ncclFloat8e4m3)
VALUE(kFloat8e5m2, ncclFloat8e5m2)
#endif
VALUE(kSum, ncclSum)
VALUE(kProduct, ncclProd)
VALUE(kMax, ncclMax)
VALUE(kMin, ncclMin)
VALUE(kAverage, ncclAvg)
#undef OURS
#endif
