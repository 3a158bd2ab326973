#include "transport/tensor/slot.h"

#include <fcntl.h>

#include <atomic>
#include <utility>

#include "transport/base/text.h"
#include "transport/tensor/row_copy.h"
#include "transport/wire/sealed_memory.h"

namespace monarch::tensor {

namespace {

std::uint64_t load(const char* start) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(const_cast<char*>(start))).load(std::memory_order_relaxed);
}

void store(char* start, std::uint64_t word) {
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(start)).store(word, std::memory_order_relaxed);
}

// Whoever has shrunk it would end who reads there.
Status check_slot(const UniqueFd& fd, std::uint64_t bytes) {
  MONARCH_ASSIGN(const std::uint64_t found, memory_size(fd.get(), F_SEAL_SHRINK | F_SEAL_GROW));
  if (found == bytes && bytes >= sizeof(std::uint64_t)) return {};
  return Error{ErrorCode::kInvalid, text("memory of ", found, " bytes for a slot that has ", bytes)};
}

}  // namespace

Result<std::unique_ptr<Slot>> Slot::make(std::uint64_t bytes, LentMemory::Readers readers) {
  auto memory = LentMemory::make("monarch-tensors", bytes, readers);
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
  MONARCH_TRY(check_slot(fd, bytes));
  MONARCH_ASSIGN(auto mapped, MappedMemory::map(fd.get(), bytes));
  return std::unique_ptr<SlotView>(new SlotView(std::move(mapped)));
}

// WARNING: the driver pins memory for writing, whatever it is asked to do with it, so a mapping that may only be read
// is refused (get_user_pages with FOLL_WRITE: EFAULT). What is protected behind it stays pinned.
Result<std::unique_ptr<SlotView>> SlotView::open_pinned(const UniqueFd& fd, std::uint64_t bytes, Cuda& cuda) {
  MONARCH_TRY(check_slot(fd, bytes));
  MONARCH_ASSIGN(auto mapped, MappedMemory::map(fd.get(), bytes, MappedMemory::Access::kWritable));
  std::unique_ptr<SlotView> made(new SlotView(std::move(mapped)));
  MONARCH_ASSIGN(made->pin_, cuda.pin(const_cast<char*>(made->start()), bytes));
  MONARCH_TRY(made->mapped_->protect());
  return made;
}

std::uint64_t SlotView::word() const {
  std::atomic_thread_fence(std::memory_order_acquire);
  return load(start());
}

}  // namespace monarch::tensor
