#pragma once

// DevicePuts: what a publisher copies from memory of GPUs into that of its versions: on streams of the caller's, behind
// what is enqueued there, so that no event is needed between them. A version is whole once an event behind its copies
// is done. Memory that copies are still under way to is kept here until they end, whatever became of its version.
//
// Thread: a publisher's. Lifetime: longer than that of memory that was put to, unless that was left to it.

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/tensor/core/plan.h"
#include "transport/tensor/cuda/driver.h"
#include "transport/tensor/slot.h"

namespace monarch::tensor {

// Memory of a GPU, and the stream that it is used on.
struct DeviceMemory {
  const char* at = nullptr;
  CudaStream stream;
};

class DevicePuts {
 public:
  // `name`: of the publication.
  DevicePuts(CudaEnd end, std::string name) : end_(std::move(end)), name_(std::move(name)) {}
  DevicePuts(const DevicePuts&) = delete;
  DevicePuts& operator=(const DevicePuts&) = delete;
  // Waits for what is left, for 5 s; what is under way then keeps its memory for ever, and one line says so.
  ~DevicePuts();

  // Whether anything was put: what versions are written into then is made for it.
  bool is_used() const { return cuda_ != nullptr; }
  // kUnsupported: there is no driver; kInvalid: this memory, or this stream, is none to be copied from.
  Status check(const DeviceMemory& from);
  // What check() has passed. `copies`: from there to memory that `to` counts from. kDevice: the driver's word.
  Status put(const std::vector<Copy>& copies, const DeviceMemory& from, char* to);
  // Has the driver know a slot; where it refuses, copies are slower, which is said once.
  void pin(Slot& slot);
  // Everything that was put since the last wait() or leave() is there. kTimeout: a stream is late; kDevice: its word;
  // then leave() is due.
  Status wait(std::uint64_t version, Duration patience);
  // Something was put since, and nobody has waited for it.
  bool is_under_way() const { return !streams_.empty(); }
  // Nobody wants what was put since; `memory` is where it is put to.
  void leave(std::shared_ptr<const void> memory);
  // Lets go of what was left and has ended.
  void tidy();

 private:
  using Events = std::vector<std::unique_ptr<CudaEvent>>;
  struct Left {
    std::shared_ptr<const void> memory;
    Events events;
    std::set<int> devices;
  };

  Events record_all(Status& failed);
  static bool have_ended(Events& events);
  std::string names(const std::set<int>& devices);

  const CudaEnd end_;
  const std::string name_;
  SharedCuda cuda_;               // once something was put
  std::set<CudaStream> streams_;  // with copies since the last wait
  std::deque<Left> left_;
  bool said_unpinned_ = false;
};

}  // namespace monarch::tensor
