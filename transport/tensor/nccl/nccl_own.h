#pragma once

// What is used of NCCL (libnccl.so.2, 2.14 or later), declared anew: neither a build nor a machine needs NVIDIA's
// headers. tests/cuda holds it against those headers where there are some.
//
// Thread: values.

#include <cstddef>
#include <cstdint>

namespace monarch::tensor::own_nccl {

struct CommTag;
using Comm = CommTag*;  // ncclComm_t
using Stream = void*;   // cudaStream_t

// ncclResult_t
using Code = int;
inline constexpr Code kSuccess = 0;
inline constexpr Code kUnhandledCudaError = 1;
inline constexpr Code kSystemError = 2;
inline constexpr Code kInternalError = 3;
inline constexpr Code kInvalidArgument = 4;
inline constexpr Code kInvalidUsage = 5;
inline constexpr Code kRemoteError = 6;
inline constexpr Code kInProgress = 7;

// ncclDataType_t
inline constexpr int kInt8 = 0;
inline constexpr int kUint8 = 1;
inline constexpr int kInt32 = 2;
inline constexpr int kUint32 = 3;
inline constexpr int kInt64 = 4;
inline constexpr int kUint64 = 5;
inline constexpr int kFloat16 = 6;
inline constexpr int kFloat32 = 7;
inline constexpr int kFloat64 = 8;
inline constexpr int kBfloat16 = 9;
inline constexpr int kFloat8e4m3 = 10;  // from 2.24 on, as the next
inline constexpr int kFloat8e5m2 = 11;

// ncclRedOp_t
inline constexpr int kSum = 0;
inline constexpr int kProduct = 1;
inline constexpr int kMax = 2;
inline constexpr int kMin = 3;
inline constexpr int kAverage = 4;

// ncclUniqueId
struct Id {
  char bytes[128] = {};
};

inline constexpr unsigned kConfigMagic = 0xcafebeef;
inline constexpr unsigned kConfigVersion = 21400;

// ncclConfig_t as 2.14 had it. A library reads as many bytes as `size` says, and by `version` it knows which fields
// there are: the others have its defaults.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = kConfigMagic;
  unsigned version = kConfigVersion;
  int blocking = 0;
  int padding = 0;  // a later library has a field here
};
static_assert(sizeof(Config) == 24, "as of 2.14: five fields, 20 bytes, and what aligns an array of it");

struct Functions {
  Code (*version)(int* version) = nullptr;
  const char* (*error_string)(Code code) = nullptr;
  const char* (*last_error)(Comm comm) = nullptr;
  Code (*make_id)(Id* id) = nullptr;
  Code (*init)(Comm* comm, int size, Id id, int rank, Config* config) = nullptr;
  Code (*async_error)(Comm comm, Code* code) = nullptr;
  Code (*finalize)(Comm comm) = nullptr;
  Code (*abort)(Comm comm) = nullptr;
  Code (*all_reduce)(const void* from, void* to, std::size_t count, int dtype, int op, Comm comm,
                     Stream stream) = nullptr;
  Code (*broadcast)(const void* from, void* to, std::size_t count, int dtype, int root, Comm comm,
                    Stream stream) = nullptr;
  Code (*all_gather)(const void* from, void* to, std::size_t count, int dtype, Comm comm, Stream stream) = nullptr;
  Code (*reduce_scatter)(const void* from, void* to, std::size_t count, int dtype, int op, Comm comm,
                         Stream stream) = nullptr;
  Code (*send)(const void* from, std::size_t count, int dtype, int peer, Comm comm, Stream stream) = nullptr;
  Code (*receive)(void* to, std::size_t count, int dtype, int peer, Comm comm, Stream stream) = nullptr;
};

}  // namespace monarch::tensor::own_nccl

// A macro, for the loader and the test of agreement need the same pairs, the one as text, the other as names:
// each(of Functions, of the library).
#define MONARCH_NCCL_FUNCTIONS(each)                                                                                 \
  each(version, ncclGetVersion) each(error_string, ncclGetErrorString) each(last_error, ncclGetLastError)            \
      each(make_id, ncclGetUniqueId) each(init, ncclCommInitRankConfig) each(async_error, ncclCommGetAsyncError)     \
          each(finalize, ncclCommFinalize) each(abort, ncclCommAbort) each(all_reduce, ncclAllReduce)                \
              each(broadcast, ncclBroadcast) each(all_gather, ncclAllGather) each(reduce_scatter, ncclReduceScatter) \
                  each(send, ncclSend) each(receive, ncclRecv)
