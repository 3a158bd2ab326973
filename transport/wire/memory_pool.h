#pragma once

// MemoryPool: memory in which bytes go to other processes of this machine, which only read them. A block is touched
// once and used again as soon as nobody else has it: pages that are new cost more than what is copied into them.
//
// While a reader has what was lent, nobody changes a byte of it. Where the kernel does not say whether anybody has a
// block, or the pool has no room, the bytes go in sealed memory of their own.
//
// Thread: any.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/wire/lent_memory.h"

namespace monarch {

class MemoryPool {
 public:
  static constexpr std::size_t kLeastBytes = 64U << 10U;  // of a block; sizes are powers of two
  static constexpr std::size_t kMostBytes = 128U << 20U;  // of the largest, and of all
  static constexpr std::size_t kBlocks = 64;

  // Of the block for so many.
  static std::uint64_t block_bytes(std::uint64_t bytes);

  MemoryPool() = default;
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // A descriptor, for reading, of memory that begins with these bytes; there may be more behind them.
  Result<UniqueFd> lend(std::string_view bytes);
  // A block that is written first, so many bytes of it, and then lent, or given back.
  struct Filling {
    std::unique_ptr<LentMemory> block;
    bool pooled = false;
  };
  Result<Filling> fill(std::uint64_t bytes);
  Result<UniqueFd> lend(Filling filled);
  void give_back(Filling filling);
  // What the blocks take, whether they are lent or not.
  std::size_t bytes();

 private:
  using Block = std::unique_ptr<LentMemory>;

  // One that nobody else has; nullptr: there is none, and none may be made.
  Block take(std::size_t size);
  bool make_room(std::size_t size);

  std::mutex mutex_;
  std::deque<Block> blocks_;  // those that were looked at or lent longest ago first
  bool works_ = true;         // the kernel tells who has a block
  std::size_t bytes_ = 0;     // of all, also of those that are being filled
};

}  // namespace monarch
