#include "transport/wire/memory_pool.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "transport/wire/sealed_memory.h"

namespace monarch {

namespace {

constexpr const char* kName = "monarch-memory";
constexpr std::size_t kALittle = 2 * 4096;
constexpr std::size_t kAsked = 2;  // blocks that the kernel is asked about: those that were lent longest ago

// What users have is often a power of two, and a body a little more.
std::size_t size_for(std::uint64_t bytes) {
  const std::uint64_t most = MemoryPool::block_bytes(bytes);
  const std::uint64_t less = most / 2 + kALittle;
  return static_cast<std::size_t>(most > MemoryPool::kLeastBytes && bytes <= less ? less : most);
}

}  // namespace

bool MemoryPool::is_free(Block& block) {
  if (block.held || block.lent > 0) return false;
  if (block.is_asked) block.is_asked = !block.memory->is_alone();
  return !block.is_asked;
}

// Room for so many bytes more, by giving up what nobody has.
bool MemoryPool::make_room(std::size_t size) {
  const auto fits = [&] { return bytes_ + size <= kMostBytes && blocks_.size() < kBlocks; };
  for (auto block = blocks_.begin(); block != blocks_.end() && !fits();) {
    if (!is_free(*block)) {
      ++block;
      continue;
    }
    bytes_ -= block->memory->size();
    block = blocks_.erase(block);
  }
  return fits();
}

// What is known to be free first, and of that what was used last.
MemoryPool::Block* MemoryPool::find_free(std::size_t size) {
  const auto may_be = [size](const Block& block) {
    return block.memory->size() == size && !block.held && block.lent == 0;
  };
  const auto known =
      std::find_if(blocks_.rbegin(), blocks_.rend(), [&](const Block& one) { return may_be(one) && !one.is_asked; });
  if (known != blocks_.rend()) return &*known;
  for (std::size_t asked = 0, left = blocks_.size(); asked < kAsked && left > 0; --left) {
    Block& first = blocks_.front();
    if (may_be(first)) {
      if (is_free(first)) return &first;
      ++asked;
    }
    blocks_.splice(blocks_.end(), blocks_, blocks_.begin());
  }
  return nullptr;
}

MemoryPool::Block* MemoryPool::make(std::size_t size) {
  if (!works_ || !make_room(size)) return nullptr;
  auto made = LentMemory::make(kName, size);
  if (!made.ok()) return nullptr;  // descriptors or memory are short just now
  works_ = (*made)->is_alone();    // else nothing would be used twice, and all be kept
  if (!works_) return nullptr;
  bytes_ += size;
  blocks_.push_back({.memory = std::move(*made), .number = next_++});
  return &blocks_.back();
}

// Without memory: there is none.
MemoryPool::Filling MemoryPool::take(std::size_t size) {
  if (size > kMostBytes) return {};
  const std::lock_guard lock(mutex_);
  Block* block = find_free(size);
  if (block == nullptr) block = make(size);
  if (block == nullptr) return {};
  block->held = true;
  return {block->memory, block->number};
}

MemoryPool::Block* MemoryPool::find(std::uint64_t number) {
  const auto found =
      std::find_if(blocks_.begin(), blocks_.end(), [number](const Block& block) { return block.number == number; });
  return found == blocks_.end() ? nullptr : &*found;
}

std::uint64_t MemoryPool::block_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kTop = std::uint64_t{1} << 63U;
  return std::bit_ceil(std::clamp(bytes, std::uint64_t{kLeastBytes}, kTop));
}

Result<UniqueFd> MemoryPool::lend(std::string_view bytes) {
  Filling filling = take(size_for(bytes.size()));
  if (filling.block == nullptr) return make_sealed_memory(kName, bytes);
  std::memcpy(filling.block->start(), bytes.data(), bytes.size());
  return lend(std::move(filling));
}

Result<MemoryPool::Lent> MemoryPool::lend_counted(std::string_view bytes) {
  Filling filling = take(size_for(bytes.size()));
  if (filling.block == nullptr) {
    MONARCH_ASSIGN(UniqueFd own, make_sealed_memory(kName, bytes));
    return Lent{std::move(own), 0};
  }
  std::memcpy(filling.block->start(), bytes.data(), bytes.size());
  Result<Lent> lent = lend_counted(filling);
  give_back(std::move(filling));
  return lent;
}

Result<MemoryPool::Filling> MemoryPool::fill(std::uint64_t bytes) {
  Filling filling = take(size_for(bytes));
  if (filling.block != nullptr) return filling;
  MONARCH_ASSIGN(filling.block, LentMemory::make(kName, static_cast<std::size_t>(bytes)));
  return filling;
}

Result<UniqueFd> MemoryPool::lend(Filling filled) {
  Result<UniqueFd> lent = filled.block->reader();
  {
    const std::lock_guard lock(mutex_);
    Block* const block = find(filled.number);
    if (block != nullptr && lent.ok()) block->is_asked = true;
  }
  give_back(std::move(filled));
  return lent;
}

// One that was given up meanwhile is memory of its own.
Result<MemoryPool::Lent> MemoryPool::lend_counted(const Filling& filled) {
  MONARCH_ASSIGN(UniqueFd memory, filled.block->reader());
  const std::lock_guard lock(mutex_);
  Block* const block = find(filled.number);
  if (block == nullptr) return Lent{std::move(memory), 0};
  ++block->lent;
  return Lent{std::move(memory), block->number};
}

void MemoryPool::give_back(Filling filling) {
  const std::lock_guard lock(mutex_);
  Block* const block = find(filling.number);
  if (block == nullptr) return;
  block->held = false;
  const auto at = std::find_if(blocks_.begin(), blocks_.end(), [block](const Block& one) { return &one == block; });
  blocks_.splice(blocks_.end(), blocks_, at);
}

void MemoryPool::count(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  Block* const block = find(number);
  if (block == nullptr) return;
  ++block->lent;
  block->is_asked = false;
}

void MemoryPool::free(std::uint64_t number, Word word) {
  const std::lock_guard lock(mutex_);
  Block* const block = find(number);
  if (block == nullptr || block->lent == 0) return;
  --block->lent;
  if (word == Word::kUnsure) block->is_asked = true;
}

void MemoryPool::give_up_lent() {
  const std::lock_guard lock(mutex_);
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    if (block->lent == 0) {
      ++block;
      continue;
    }
    bytes_ -= block->memory->size();
    block = blocks_.erase(block);
  }
}

std::size_t MemoryPool::bytes() {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace monarch
