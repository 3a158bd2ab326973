#pragma once

// Cuda: what is used of NVIDIA's driver, and no more: on which GPU memory lies, memory of the host that it may fill and
// read by itself, copies on a stream of the caller's, and events that say what is done. What has a driver implements it
// (libcuda.h).
//
// A copy is only enqueued when its call returns, whatever memory it is of: an event alone says that the memory of the
// host is free again, or filled.
//
// Thread: any. Lifetime: pins and events within that of the Cuda; a pin longer than what is enqueued of its memory, and
// shorter than the mapping of it.

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "transport/base/result.h"

namespace monarch::tensor {

inline constexpr std::uint64_t kStreamOfThread = 2;
// The caller's, by its handle (CUstream). 0 and 1: the default one of its GPU; 2: that of the calling thread.
struct CudaStream {
  int device = 0;  // the GPU, as this process counts them
  std::uint64_t handle = 0;
  auto operator<=>(const CudaStream&) const = default;
};

// Rows between memory of the host and of a GPU.
struct CudaCopy {
  char* host = nullptr;
  char* device = nullptr;
  std::uint64_t row = 0;  // bytes
  std::uint64_t rows = 1;
  std::uint64_t host_pitch = 0;  // bytes from one row to the next; of one row nobody looks at it
  std::uint64_t device_pitch = 0;
};

// Memory of the host that the driver fills and reads by itself.
class CudaPin {
 public:
  CudaPin() = default;
  CudaPin(const CudaPin&) = delete;
  CudaPin& operator=(const CudaPin&) = delete;
  virtual ~CudaPin() = default;
};

class CudaEvent {
 public:
  CudaEvent() = default;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  virtual ~CudaEvent() = default;

  // kDevice: what was enqueued before it has failed, and nothing of it goes on. kBusy: nobody knows.
  virtual Result<bool> is_done() = 0;
};

// While it lives, the primary context of its GPU is current in the thread that has made it, and ends it; then what was
// current before is so again.
class CudaScope {
 public:
  CudaScope() = default;
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;
  virtual ~CudaScope() = default;
};

class Cuda {
 public:
  Cuda() = default;
  Cuda(const Cuda&) = delete;
  Cuda& operator=(const Cuda&) = delete;
  virtual ~Cuda() = default;

  // "GPU 0 (NVIDIA H200)"
  virtual std::string device_name(int device) = 0;
  // The GPU that the memory is of, managed memory too. kInvalid: the driver knows no such memory, or it is the host's.
  virtual Result<int> device_of(const char* at) = 0;
  // kInvalid: it is captured into a graph, where nothing may be waited for. kDevice: it has failed, or is another
  // GPU's; what it costs is an event recorded.
  virtual Status check(const CudaStream& stream) = 0;
  // Of mapped memory that this process may write: all of it, or none. kUnsupported, kBusy: the driver refuses; the
  // message says why.
  virtual Result<std::unique_ptr<CudaPin>> pin(char* start, std::uint64_t bytes) = 0;
  // In the stream's turn; of 0 bytes there is nothing to do. kDevice: the driver's word, with the GPU; a part of it may
  // be enqueued then.
  virtual Status to_host(const CudaCopy& copy, const CudaStream& stream) = 0;
  virtual Status to_device(const CudaCopy& copy, const CudaStream& stream) = 0;
  // Done when all is that was enqueued there before. kDevice: it has failed, and nothing that was enqueued goes on.
  // kBusy: there is no event, be it that the stream is another GPU's, or is captured; what was enqueued goes on.
  virtual Result<std::unique_ptr<CudaEvent>> record(const CudaStream& stream) = 0;
  // For libraries that take the GPU whose context is current. kDevice, kInvalid: there is no such GPU.
  virtual Result<std::unique_ptr<CudaScope>> enter(int device) = 0;
};

// Owners: the session, and who copies by it.
using SharedCuda = std::shared_ptr<Cuda>;

// The driver of this process, looked for once memory of a GPU is met.
struct CudaEnd {
  std::function<Result<SharedCuda>()> find = [] {
    return Error{ErrorCode::kUnsupported, "this process uses no memory of GPUs"};
  };
  bool pins = true;  // it may know memory of the host
  // Hears a line for the output of the rank.
  std::function<void(const std::string& line)> say = [](const std::string& /*line*/) {};
};

}  // namespace monarch::tensor
