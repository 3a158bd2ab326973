#include "transport/wire/memory_pool.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "transport/wire/sealed_memory.h"

namespace monarch {

namespace {

constexpr const char* kName = "monarch-memory";
constexpr std::size_t kAsked = 2;  // blocks that may be free: those that were lent longest ago

}  // namespace

// Room for so many bytes more, by giving up what nobody has.
bool MemoryPool::make_room(std::size_t size) {
  const auto fits = [&] { return bytes_ + size <= kMostBytes && blocks_.size() < kBlocks; };
  for (auto block = blocks_.begin(); block != blocks_.end() && !fits();) {
    if (!(*block)->is_alone()) {
      ++block;
      continue;
    }
    bytes_ -= (*block)->size();
    block = blocks_.erase(block);
  }
  return fits();
}

MemoryPool::Block MemoryPool::take(std::size_t size) {
  const std::lock_guard lock(mutex_);
  for (std::size_t asked = 0, left = blocks_.size(); asked < kAsked && left > 0; --left) {
    Block block = std::move(blocks_.front());
    blocks_.pop_front();
    const bool fits = block->size() == size;
    if (fits && block->is_alone()) return block;
    if (fits) ++asked;
    blocks_.push_back(std::move(block));
  }
  if (!works_ || !make_room(size)) return nullptr;
  auto made = LentMemory::make(kName, size);
  if (!made.ok()) return nullptr;  // descriptors or memory are short just now
  works_ = (*made)->is_alone();    // else nothing would be used twice, and all be kept
  if (!works_) return nullptr;
  bytes_ += size;
  return std::move(*made);
}

std::uint64_t MemoryPool::block_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kTop = std::uint64_t{1} << 63U;
  return std::bit_ceil(std::clamp(bytes, std::uint64_t{kLeastBytes}, kTop));
}

Result<UniqueFd> MemoryPool::lend(std::string_view bytes) {
  const std::size_t size = block_bytes(bytes.size());
  Block block = size <= kMostBytes ? take(size) : nullptr;
  if (block == nullptr) return make_sealed_memory(kName, bytes);
  std::memcpy(block->start(), bytes.data(), bytes.size());
  Result<UniqueFd> lent = block->reader();
  const std::lock_guard lock(mutex_);
  blocks_.push_back(std::move(block));
  return lent;
}

Result<MemoryPool::Filling> MemoryPool::fill(std::uint64_t bytes) {
  const std::size_t size = block_bytes(bytes);
  Block block = size <= kMostBytes ? take(size) : nullptr;
  if (block != nullptr) return Filling{std::move(block), true};
  MONARCH_ASSIGN(block, LentMemory::make(kName, static_cast<std::size_t>(bytes)));
  return Filling{std::move(block), false};
}

Result<UniqueFd> MemoryPool::lend(Filling filled) {
  Result<UniqueFd> lent = filled.block->reader();
  give_back(std::move(filled));
  return lent;
}

void MemoryPool::give_back(Filling filling) {
  if (!filling.pooled) return;
  const std::lock_guard lock(mutex_);
  blocks_.push_back(std::move(filling.block));
}

std::size_t MemoryPool::bytes() {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace monarch
