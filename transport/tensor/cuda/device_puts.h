#pragma once

// DevicePuts: what a publisher copies from memory of GPUs into that of its versions: on streams of the caller's, behind
// what is enqueued there, so that no event is needed between them. A version is whole once an event behind its copies
// is done. Memory that copies are still under way to is kept here until they end, whatever became of its version.
//
// Thread: a publisher's. Lifetime: longer than that of memory that was put to, unless that was left to it.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
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
  // What is put from now on is another version. kBusy: GPUs still write too many that were left.
  Status begin();
  // kUnsupported: there is no driver; kInvalid: this memory, or this stream, is none to be copied from.
  Status check(const DeviceMemory& from);
  // What check() has passed. `copies`: from there to memory that `to` counts from. kDevice: the driver's word, which
  // wait() has, too.
  Status put(const std::vector<Copy>& copies, const DeviceMemory& from, char* to);
  // Has the driver know a slot, once; where it refuses, copies are slower, which is said once.
  void pin(Slot& slot);
  // Everything that was put since begin() is there. kTimeout: a stream is late; kDevice: its word;
  // then leave() is due.
  Status wait(std::uint64_t version, Duration patience);
  // Something was put since, and nobody has waited for it.
  bool is_under_way() const { return !behind_.empty() || !unknown_.empty(); }
  // Nobody wants what was put since; `memory` is where it is put to.
  void leave(std::shared_ptr<const void> memory);

 private:
  using Events = std::vector<std::unique_ptr<CudaEvent>>;
  // The stream of a thread (CudaStream) is another in each.
  struct Turn {
    CudaStream stream;
    std::thread::id thread;
    auto operator<=>(const Turn&) const = default;
  };
  struct Left {
    std::shared_ptr<const void> memory;
    Events events;
    std::set<int> devices;
  };

  // An event behind all that was put on the stream: now, for a stream may be captured, or gone, by the time that it is
  // waited for.
  Status mark(const CudaStream& stream);
  // Lets go of what was left and has ended.
  void tidy();
  void give_up(std::shared_ptr<const Left> left, const std::string& why);
  static bool have_ended(Events& events);
  std::set<int> devices() const;
  std::string names(const std::set<int>& devices);

  const CudaEnd end_;
  const std::string name_;
  SharedCuda cuda_;  // once something was put
  std::map<Turn, std::unique_ptr<CudaEvent>> behind_;
  std::set<int> unknown_;  // GPUs, of puts that no event says the end of
  Status failure_;         // of this version
  std::deque<Left> left_;
  bool said_unpinned_ = false;
};

}  // namespace monarch::tensor
