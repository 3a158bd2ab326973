#pragma once

// NcclGroup: a communicator of NCCL's that ends when one of its members does, and never keeps a call waiting for who is
// gone. Every wait looks at NCCL's asynchronous error, at whether somebody is lost, and at its deadline. Its end, by
// whatever cause, is ncclCommAbort: once, on a thread of its own, for that waits for what runs on the GPU. After it
// nothing is asked of NCCL any more, and all calls answer kGone with the first cause.
//
// It does not find its members, and makes no other group: who has met gives it id, rank, size and a GroupTie.
//
// Thread: any; of run() and close() one is served after the other. Lifetime: memory that work was asked for has to stay
// until wait() has seen its end, or until this is destroyed: the destructor waits for the abort.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/tensor/cuda/driver.h"
#include "transport/tensor/nccl/group_tie.h"
#include "transport/tensor/nccl/library.h"

namespace monarch::tensor {

struct NcclMember {
  std::string group;  // its name, for errors
  NcclPlace place;
  int device = 0;  // the GPU, as this process counts them
};

// What it is made with.
struct NcclMeans {
  SharedNccl nccl;
  SharedCuda cuda;
  SharedGroupTie tie;
  // A line for the output of the rank: what a call waits for since `waiting_every`, again and again, and what nobody
  // waits for any more to be told.
  std::function<void(const std::string& line)> say;
  Duration waiting_every = Duration::seconds(30);
  // What runs on the GPU is given to end, before it is left behind.
  Duration abort_patience = Duration::seconds(10);
};

class NcclGroup {
 public:
  // Returns once all members have opened it. kGone: one of them is lost; kTimeout: it is not open by then; else NCCL's
  // words (kInvalid: it does not like what it is asked for, as two members on one GPU).
  static Result<std::unique_ptr<NcclGroup>> open(NcclMeans means, NcclMember member, Duration timeout);
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  // Aborts it where it was not closed, which all others are told, and waits for that for `abort_patience` at most.
  ~NcclGroup();

  // Until it is enqueued on the stream: wait() says when it has ended. Where nothing was asked of NCCL (kInvalid,
  // kUnsupported, and kTimeout where another thread's call took the time) the group goes on; with any other error it
  // has ended.
  Status run(const NcclWork& work, Duration timeout);
  // Until all that is enqueued on the stream has ended. kTimeout: it has not yet, and may be waited for again.
  Status wait(std::uint64_t stream, Duration timeout);
  // The end in order, by all members: what they still have to get of each other is sent, and all are here, then each
  // ends its own. Where one is not here by then it ends all the same, and the others are told. kGone: one is lost.
  Status close(Duration timeout);

 private:
  struct Shared;
  class Notice;
  class Turn;

  explicit NcclGroup(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  Status join(Instant until);
  Status check(const NcclWork& work) const;
  Status check_memory(const char* which, const void* at) const;

  // Owners: this, and its thread, which is left behind with it where NCCL does not come back.
  const std::shared_ptr<Shared> shared_;
};

}  // namespace monarch::tensor
