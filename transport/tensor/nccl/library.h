#pragma once

// NcclLibrary: what is used of NCCL, and no more: the id of a communicator, and a communicator that never blocks. What
// loads libnccl.so.2 implements it (load.h).
//
// A call answers before its work is done: done() says when NCCL has enqueued it, and an event of the stream when it has
// ended. Until done() no other work may be asked for.
//
// Thread: a library any; a communicator one at a time, and with a context of its GPU current. Lifetime: a communicator
// within that of its library.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "transport/base/result.h"
#include "transport/tensor/core/dtype.h"

namespace monarch::tensor {

inline constexpr std::size_t kNcclIdBytes = 128;

enum class NcclOp : std::uint8_t { kSum, kProduct, kMax, kMin, kAverage };

enum class NcclCall : std::uint8_t { kAllReduce, kBroadcast, kAllGather, kReduceScatter, kSend, kReceive };

// "all_reduce"
const char* nccl_call_name(NcclCall call);

// Work of all members, or of two. Where nothing is reduced, elements are moved as bytes, whatever they are.
struct NcclWork {
  NcclCall call = NcclCall::kAllReduce;
  const void* from = nullptr;  // memory of the GPU, as all here
  void* to = nullptr;
  // Elements: of all_gather those that each gives, of reduce_scatter those that each gets.
  std::uint64_t count = 0;
  Dtype dtype;
  NcclOp op = NcclOp::kSum;
  std::uint32_t peer = 0;  // the root of a broadcast; whom it is sent to or received from
  std::uint64_t stream = 0;
};

// Of work: whether it is enqueued. An error has NCCL's words and ends the communicator.
using NcclAnswer = Result<bool>;

class NcclComm {
 public:
  NcclComm() = default;
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;
  // It frees nothing of NCCL's: abort() does.
  virtual ~NcclComm() = default;

  virtual NcclAnswer enqueue(const NcclWork& work) = 0;
  // What others still have to get of this one, is sent.
  virtual NcclAnswer flush() = 0;
  // Whether what was asked for last is done; an error of what was enqueued, too.
  virtual NcclAnswer done() = 0;
  // The last call, once: what runs of it on the GPU ends, and all is freed. It waits for that.
  virtual Status abort() = 0;
};

struct NcclPlace {
  std::string id;  // kNcclIdBytes, the same in all members
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
};

class NcclLibrary {
 public:
  // A communicator that is not there, where it was refused at once.
  struct Begun {
    std::unique_ptr<NcclComm> comm;
    NcclAnswer answer = false;
  };

  NcclLibrary() = default;
  NcclLibrary(const NcclLibrary&) = delete;
  NcclLibrary& operator=(const NcclLibrary&) = delete;
  virtual ~NcclLibrary() = default;

  // "2.28.9"
  virtual const std::string& version() const = 0;
  // In one member, which others find by it; its process has a thread of NCCL's from then on.
  virtual Result<std::string> make_id() = 0;
  // On the GPU whose context is current. It is done once all members are there.
  virtual Begun begin(const NcclPlace& place) = 0;
  // kUnsupported: this NCCL reduces no such elements.
  virtual Status check_reduces(Dtype dtype) const = 0;
};

// Owners: whoever has made groups by it.
using SharedNccl = std::shared_ptr<NcclLibrary>;

}  // namespace monarch::tensor
