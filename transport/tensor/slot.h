#pragma once

// Slot: memory of a publisher that holds one version of its tensors at a time. Its first word says which, or that it is
// being written; a reader who finds after his last byte the word that he was told has read that version and nothing
// else. That is all that is believed about what was read, on whichever way.
//
// WARNING: a sequence lock between processes. C++ has no word for it, and thread sanitizer sees none of it: what is
// read while it is written is thrown away unseen. The fences are those of Boehm, "Can seqlocks get along with
// programming language memory models?" (MSPC 2012).
//
// Who has memory of a GPU has the driver know the memory of slots, his own and those that he reads: it copies by itself
// then. A driver takes what may be written alone, so a slot that is filled from a GPU may be mapped writable by a
// reader who asks for that; he protects it once the driver knows it.
//
// Thread: a Slot one; a SlotView any.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/tensor/core/slot_word.h"
#include "transport/tensor/cuda/driver.h"
#include "transport/wire/lent_memory.h"
#include "transport/wire/mapped_memory.h"

namespace monarch::tensor {

class Slot {
 public:
  // kBusy: there is no memory for it; the message has the bytes. They count from the word on.
  static Result<std::unique_ptr<Slot>> make(std::uint64_t bytes,
                                            LentMemory::Readers readers = LentMemory::Readers::kOnlyRead);

  // From now on it holds no version.
  void begin();
  // Everything is in it.
  void commit(std::uint64_t version);
  std::uint64_t word() const;

  char* start() const { return memory_->start(); }
  std::uint64_t bytes() const { return memory_->size(); }
  // For a reader on this machine.
  Result<UniqueFd> reader() const { return memory_->reader(); }
  // For one who has a driver know it.
  Result<UniqueFd> pinning_reader() const { return memory_->pinning_reader(); }
  bool may_be_pinned() const { return memory_->readers() == LentMemory::Readers::kMayPin; }
  // It is known to the driver from now on, until it goes; nullptr: the driver has refused it.
  void pin(std::unique_ptr<CudaPin> pin) {
    pin_ = std::move(pin);
    shown_ = true;
  }
  // The driver was asked.
  bool is_shown() const { return shown_; }
  // No process of this machine has it mapped.
  bool is_alone() const { return memory_->is_alone(); }

 private:
  explicit Slot(std::unique_ptr<LentMemory> memory) : memory_(std::move(memory)) {}

  std::unique_ptr<LentMemory> memory_;
  std::unique_ptr<CudaPin> pin_;  // behind the memory: it ends before that is unmapped
  bool shown_ = false;
};

// A slot of another process, mapped.
class SlotView {
 public:
  // kInvalid: `fd` is no memory of so many bytes that its owner cannot take away.
  static Result<std::unique_ptr<SlotView>> open(const UniqueFd& fd, std::uint64_t bytes);
  // The same of a pinning_reader()'s, known to the driver; where that refuses it, open() may still do.
  static Result<std::unique_ptr<SlotView>> open_pinned(const UniqueFd& fd, std::uint64_t bytes, Cuda& cuda);

  // What it was after all that was read before.
  std::uint64_t word() const;
  const char* start() const { return mapped_->bytes().data(); }
  std::uint64_t bytes() const { return mapped_->bytes().size(); }
  bool is_pinned() const { return pin_ != nullptr; }

 private:
  explicit SlotView(std::shared_ptr<const MappedMemory> mapped) : mapped_(std::move(mapped)) {}

  std::shared_ptr<const MappedMemory> mapped_;
  std::unique_ptr<CudaPin> pin_;  // behind the mapping: it ends before that does
};

}  // namespace monarch::tensor
