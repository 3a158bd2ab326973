#pragma once

// Verbs: what is used of RDMA's verbs, and no more: a device, memory that it knows, and queues that READ. What has a
// network card implements it (libibverbs.h); tests have one that needs none.
//
// Nobody is given a right to write: memory is known either for others to READ, or for the device to put here what was
// READ elsewhere.
//
// Thread: a Device any; a Queue one at a time. Lifetime: queues and memory within that of their device; memory longer
// than what its queues have under way.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/tensor/core/verbs_choice.h"

namespace monarch::tensor {

enum class VerbsAccess : std::uint8_t {
  kReadByOthers,  // by offset from its first byte on
  kFilledHere,
};

class VerbsMemory {
 public:
  VerbsMemory() = default;
  VerbsMemory(const VerbsMemory&) = delete;
  VerbsMemory& operator=(const VerbsMemory&) = delete;
  virtual ~VerbsMemory() = default;

  virtual std::uint32_t local_key() const = 0;
  virtual std::uint32_t remote_key() const = 0;
};

struct VerbsRead {
  std::uint64_t id = 0;
  char* into = nullptr;
  std::uint32_t local_key = 0;
  std::uint64_t from = 0;  // offset in the memory of `remote_key`
  std::uint32_t remote_key = 0;
  std::uint32_t bytes = 0;
  bool told = true;  // that it is done; one that fails is told always
};

struct VerbsCompletion {
  std::uint64_t id = 0;
  std::string error;  // empty: it is done, and so are all before it
};

class VerbsQueue {
 public:
  VerbsQueue() = default;
  VerbsQueue(const VerbsQueue&) = delete;
  VerbsQueue& operator=(const VerbsQueue&) = delete;
  // What is under way ends, and touches no memory any more.
  virtual ~VerbsQueue() = default;

  virtual std::uint32_t number() const = 0;
  // Once. From then on its other side may READ by it, and where it was made with reads, so may it.
  virtual Status connect(const QueuePath& path) = 0;
  virtual Status post(const VerbsRead& read) = 0;
  // What is done since; at most `most`.
  virtual Result<std::vector<VerbsCompletion>> take(std::size_t most) = 0;
  // The descriptor is readable once something is done after this.
  virtual Status arm() = 0;
  // Whether it was, since it was armed; it is not armed any more then.
  virtual bool was_woken() = 0;
  virtual int descriptor() const = 0;
  // Everything that is under way fails, soon.
  virtual void set_error() = 0;
};

class VerbsDevice {
 public:
  VerbsDevice() = default;
  VerbsDevice(const VerbsDevice&) = delete;
  VerbsDevice& operator=(const VerbsDevice&) = delete;
  virtual ~VerbsDevice() = default;

  virtual const DeviceFacts& facts() const = 0;
  // As it is now: addresses come and go.
  virtual Result<PortFacts> port() const = 0;
  // kBusy: no more memory can be locked, or known; the message has the limit and the remedy.
  virtual Result<std::unique_ptr<VerbsMemory>> know(char* start, std::uint64_t bytes, VerbsAccess access) = 0;
  // `reads`: how many may be posted at a time; 0: it serves its other side alone.
  virtual Result<std::unique_ptr<VerbsQueue>> make_queue(std::size_t reads) = 0;
};

class VerbsLibrary {
 public:
  VerbsLibrary() = default;
  VerbsLibrary(const VerbsLibrary&) = delete;
  VerbsLibrary& operator=(const VerbsLibrary&) = delete;
  virtual ~VerbsLibrary() = default;

  virtual Result<std::vector<DeviceFacts>> devices() = 0;
  virtual Result<std::unique_ptr<VerbsDevice>> open(const DeviceFacts& device, std::uint8_t port) = 0;
};

// Owners: whoever reads or is read by it.
using SharedVerbsDevice = std::shared_ptr<VerbsDevice>;

// The device of this process, or why there is none.
struct VerbsEnd {
  SharedVerbsDevice device;
  std::string why_not = "no RDMA device";
  // Rows below that go over the link, where the owner packs them: a READ for each costs more.
  std::uint64_t short_row = 4'096;
};

}  // namespace monarch::tensor
