#pragma once

// Publisher: what a rank publishes under one name, as its own thread writes it: version by version, each of the same
// parts of the same tensors. What is put is copied into the slot that the owner's thread names; what is lent is written
// there by the caller. The first version is kept aside until it is whole, since only then it is known how large a slot
// has to be.
//
// Memory of a GPU is copied on a stream of the caller's: it has to stay as it is only in the order of that stream, and
// where it is until the version has ended.
//
// Thread: one. Lifetime: within that of the OwnerThread.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/tensor/core/index.h"
#include "transport/tensor/cuda/device_puts.h"
#include "transport/tensor/owner_thread.h"
#include "transport/tensor/publication.h"

namespace monarch::tensor {

class Publisher {
 public:
  // kBusy: this rank publishes something of that name already.
  static Result<std::unique_ptr<Publisher>> open(OwnerThread& owner, PublicationOptions options, CudaEnd cuda = {});
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  // It is published no more, whoever reads it. Waits for GPUs that write a version which was not committed.
  ~Publisher();

  // Waits until the older slot may be written: for readers no longer than the owner's patience. kInvalid: such a
  // version may not be written, or what others of the gang publish does not fit. kBusy: readers keep too much memory,
  // or GPUs do.
  Status begin(std::uint64_t number);
  // A part of it: memory for its bytes, dense and row-major, until the version is committed or abandoned. kInvalid: it
  // is none, or none of the first version, or is there already.
  Result<char*> lend(const TensorKind& tensor, const Box& box);
  // The same, copied from memory with such strides in bytes. kInvalid also: it is not dense in its last dimension.
  Status put(const TensorKind& tensor, const Box& box, const char* data, const Extents& strides);
  // The same, published with elements of another dtype. kInvalid also: they are not made into those; float32 is rounded
  // to bfloat16.
  Status put_as(const TensorKind& tensor, const Dtype& as, const Box& box, const char* data, const Extents& strides);
  // The same of memory of a GPU, which is copied on its stream. kInvalid also: the driver does not know it;
  // kUnsupported: there is no driver; kDevice: it fails, and the version is to be abandoned.
  Status put_device(const TensorKind& tensor, const Box& box, const DeviceMemory& from, const Extents& strides);
  // Waits for the streams that it was copied on. kInvalid: a part of the first version is missing. kBusy: there is no
  // memory for a slot. kTimeout: a stream is late. kDevice: one has failed. Then nothing is published.
  Status commit(Duration patience = Duration::forever());
  void abandon();
  // Nothing more comes. Waits until all readers have the last version or have gone, for the options' `linger` at most.
  Status close();

 private:
  // A part of the first version, before there is a slot.
  struct Aside {
    struct Free {
      void operator()(char* memory) const { std::free(memory); }
    };
    std::unique_ptr<char, Free> bytes;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;  // in a slot
  };

  using Asides = std::shared_ptr<std::vector<Aside>>;  // owners: this, and GPUs that fill them

  Publisher(OwnerThread& owner, PublicationOptions options, PublisherWords words, CudaEnd cuda)
      : owner_(owner), options_(std::move(options)), words_(std::move(words)), puts_(std::move(cuda), options_.name) {}
  Result<char*> lend_aside(const TensorKind& tensor, const Box& box, std::uint64_t bytes);
  Result<char*> lend_slot(const TensorKind& tensor, const Box& box);
  Status take_memory();
  Status check_whole() const;
  // What the owner's thread has said since; kTimeout: nothing until then.
  Result<PublisherWord> hear(Instant until);
  Status usable() const;

  OwnerThread& owner_;
  const PublicationOptions options_;
  const PublisherWords words_;
  DevicePuts puts_;
  std::vector<PublisherWord> heard_;
  std::optional<std::string> unfit_;
  SlotLayout layout_;
  Asides aside_ = std::make_shared<std::vector<Aside>>();
  bool fixed_ = false;  // a version was committed: all have these parts
  bool writing_ = false;
  bool closed_ = false;
  std::uint64_t number_ = 0;
  std::shared_ptr<Slot> slot_;       // that is written
  std::set<const TensorPart*> put_;  // of the layout, that are in it; those without bytes lie where others do
};

}  // namespace monarch::tensor
