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
  std::size_t asked = 0;
  for (auto block = blocks_.begin(); block != blocks_.end() && asked < kAsked; ++block) {
    if ((*block)->size() != size) continue;
    ++asked;
    if (!(*block)->is_alone()) continue;
    Block taken = std::move(*block);
    blocks_.erase(block);
    return taken;
  }
  if (!make_room(size)) return nullptr;
  auto made = LentMemory::make(kName, size);
  if (!made.ok()) return nullptr;
  bytes_ += size;
  return std::move(*made);
}

Result<UniqueFd> MemoryPool::lend(std::string_view bytes) {
  const std::size_t size = std::bit_ceil(std::max(bytes.size(), kLeastBytes));
  Block block = size <= kMostBytes ? take(size) : nullptr;
  if (block == nullptr) return make_sealed_memory(kName, bytes);
  std::memcpy(block->start(), bytes.data(), bytes.size());
  Result<UniqueFd> lent = block->reader();
  const std::lock_guard lock(mutex_);
  blocks_.push_back(std::move(block));
  return lent;
}

std::size_t MemoryPool::bytes() {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace monarch
