#include "transport/tensor/slot.h"

#include <atomic>
#include <utility>

#include "transport/base/text.h"
#include "transport/tensor/row_copy.h"

namespace monarch::tensor {

namespace {

std::uint64_t load(const char* start) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(const_cast<char*>(start))).load(std::memory_order_relaxed);
}

void store(char* start, std::uint64_t word) {
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(start)).store(word, std::memory_order_relaxed);
}

}  // namespace

Result<std::unique_ptr<Slot>> Slot::make(std::uint64_t bytes) {
  auto memory = LentMemory::make("monarch-tensors", bytes);
  if (!memory.ok()) {
    return Error{ErrorCode::kBusy, text("no memory of ", amount_text(bytes), " for a slot: ", memory.error().message)};
  }
  return std::unique_ptr<Slot>(new Slot(std::move(*memory)));
}

// No byte of the next version is written before the word is.
void Slot::begin() {
  store(start(), 0);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// Nor the word before the last byte.
void Slot::commit(std::uint64_t version) {
  finish_rows();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  store(start(), word_of(version));
}

std::uint64_t Slot::word() const { return load(start()); }

Result<std::unique_ptr<SlotView>> SlotView::open(const UniqueFd& fd, std::uint64_t bytes) {
  MONARCH_ASSIGN(const std::uint64_t found, lent_memory_size(fd.get()));
  if (found != bytes || bytes < sizeof(std::uint64_t)) {
    return Error{ErrorCode::kInvalid, text("memory of ", found, " bytes for a slot that has ", bytes)};
  }
  MONARCH_ASSIGN(auto mapped, MappedMemory::map(fd.get(), bytes));
  return std::unique_ptr<SlotView>(new SlotView(std::move(mapped)));
}

std::uint64_t SlotView::word() const {
  std::atomic_thread_fence(std::memory_order_acquire);
  return load(start());
}

}  // namespace monarch::tensor
