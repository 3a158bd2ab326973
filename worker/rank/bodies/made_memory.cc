#include "worker/rank/bodies/made_memory.h"

#include <cstring>
#include <utility>

#include <monarch/codec.hpp>

namespace monarch {

namespace {

std::size_t size_of(const std::vector<monarch_bytes_v1>& pieces) {
  std::size_t size = 0;
  for (const monarch_bytes_v1& piece : pieces) size += piece.size;
  return size;
}

// Whether these bytes are there already; `write`: now they are.
bool put(char* at, const std::vector<monarch_bytes_v1>& pieces, bool write) {
  for (const monarch_bytes_v1& piece : pieces) {
    if (piece.size == 0) continue;
    if (write) std::memcpy(at, piece.data, piece.size);
    if (!write && std::memcmp(at, piece.data, piece.size) != 0) return false;
    at += piece.size;
  }
  return true;
}

}  // namespace

// A post takes no block that is larger than the body needs, from where that begins.
char* MadeMemory::make(std::size_t size) {
  {
    const std::lock_guard lock(mutex_);
    if (made_.size() >= kMost) return nullptr;
  }
  const std::size_t least = kBefore + size;
  const bool has_room_behind = MemoryPool::block_bytes(least + kBehind) == MemoryPool::block_bytes(least);
  auto filling = pool_.fill(has_room_behind ? least + kBehind : least);
  if (!filling.ok()) return nullptr;
  char* const start = filling->block->start() + kBefore;
  const std::lock_guard lock(mutex_);
  Made& made = made_.emplace(start, Made{.filling = std::move(*filling), .size = size}).first->second;
  if (made.filling.number != 0) of_a_block_.emplace(made.filling.number, &made);
  return start;
}

void MadeMemory::drop(const char* start) {
  std::map<const char*, Made>::node_type dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped = made_.extract(start);
    if (!dropped.empty()) of_a_block_.erase(dropped.mapped().filling.number);
  }
  if (!dropped.empty()) pool_.give_back(std::move(dropped.mapped().filling));
}

bool MadeMemory::is_in_block(const char* start) {
  const std::lock_guard lock(mutex_);
  const auto found = made_.find(start);
  return found != made_.end() && found->second.filling.number != 0;
}

bool MadeMemory::surround(Made& made, const std::vector<monarch_bytes_v1>& before,
                          const std::vector<monarch_bytes_v1>& behind) {
  const std::size_t head = size_of(before);
  char* const start = made.filling.block->start() + kBefore;
  const std::size_t room = made.filling.block->size() - kBefore - made.size;
  if (head > kBefore || size_of(behind) > room) return false;
  const bool may_write = made.lent == 0 && !made.is_read_always;
  return put(start - head, before, may_write) && put(start + made.size, behind, may_write);
}

std::optional<MadeMemory::Lent> MadeMemory::lend(const BodyPieces& pieces) {
  const std::lock_guard lock(mutex_);
  if (made_.empty()) return std::nullopt;
  Made* made = nullptr;
  std::vector<monarch_bytes_v1> before;
  std::vector<monarch_bytes_v1> behind;
  for (const monarch_bytes_v1& piece : pieces) {
    const auto found =
        piece.size < codec::Writer::kNotedBytes ? made_.end() : made_.find(static_cast<const char*>(piece.data));
    const bool is_made = found != made_.end() && found->second.size == piece.size;
    if (is_made && made == nullptr) {
      made = &found->second;
    } else if (is_made || piece.size >= codec::Writer::kNotedBytes) {
      return std::nullopt;  // another large one
    } else {
      (made == nullptr ? before : behind).push_back(piece);
    }
  }
  if (made == nullptr || !surround(*made, before, behind)) return std::nullopt;
  auto lent = pool_.lend_counted(made->filling);
  if (!lent.ok()) return std::nullopt;  // no descriptor is left: it is copied, or that says so
  if (lent->block == 0) made->is_read_always = true;
  if (lent->block != 0) ++made->lent;
  return Lent{std::move(*lent), kBefore - size_of(before)};
}

void MadeMemory::freed(std::uint64_t block, MemoryPool::Word word) {
  const std::lock_guard lock(mutex_);
  const auto found = of_a_block_.find(block);
  if (found == of_a_block_.end() || found->second->lent == 0) return;
  --found->second->lent;
  if (word == MemoryPool::Word::kUnsure) found->second->is_read_always = true;
}

void MadeMemory::give_up_lent() {
  const std::lock_guard lock(mutex_);
  for (auto& [start, made] : made_) {
    if (made.lent > 0) made.is_read_always = true;
  }
}

}  // namespace monarch
