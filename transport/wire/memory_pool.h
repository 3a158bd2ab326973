#pragma once

// MemoryPool: memory in which bytes go to other processes of this machine, which only read them. A block is touched
// once and used again as soon as nobody else reads it: pages that are new cost more than what is copied into them.
//
// While a reader has what was lent, nobody changes a byte of it. Who lends says how it is known that nobody has it any
// more: the kernel is asked (then no reader may keep its mapping for later), or it is counted, and free() says so.
// Where the kernel does not say whether anybody has a block, or the pool has no room, the bytes go in memory of their
// own.
//
// Thread: any.

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/wire/lent_memory.h"

namespace monarch {

class MemoryPool {
 public:
  static constexpr std::size_t kLeastBytes = 64U << 10U;  // of a block; sizes are powers of two, or two pages more
  static constexpr std::size_t kMostBytes = 128U << 20U;  // of the largest, and of all
  static constexpr std::size_t kBlocks = 64;

  // Of the block for so many, at most.
  static std::uint64_t block_bytes(std::uint64_t bytes);

  MemoryPool() = default;
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // A descriptor, for reading, of memory that begins with these bytes; there may be more behind them.
  Result<UniqueFd> lend(std::string_view bytes);
  // The same, counted.
  struct Lent {
    UniqueFd memory;
    std::uint64_t block = 0;  // its number; 0: memory of its own, which nobody writes any more
  };
  Result<Lent> lend_counted(std::string_view bytes);

  // A block that is written first, so many bytes of it. Nobody else writes it until it is given back. Owners of the
  // memory: this and the pool.
  struct Filling {
    std::shared_ptr<LentMemory> block;
    std::uint64_t number = 0;  // 0: it is none of the pool's
  };
  Result<Filling> fill(std::uint64_t bytes);
  // Lends it, and gives it back.
  Result<UniqueFd> lend(Filling filled);
  // Such a block, which has not left this process yet, is counted from here on, as lent once.
  void count(std::uint64_t block);
  // As often as one likes before it is given back.
  Result<Lent> lend_counted(const Filling& filled);
  void give_back(Filling filling);

  // What was lent as that block is read no more, by the word of who read it; once for each time that it was lent.
  // `unsure`: the kernel alone knows.
  enum class Word : std::uint8_t { kSure, kUnsure };
  void free(std::uint64_t block, Word word = Word::kSure);
  // Nobody says any more what becomes of the blocks that are lent and counted: they are never written again.
  void give_up_lent();

  // What the blocks take, whether they are lent or not.
  std::size_t bytes();

 private:
  struct Block {
    std::shared_ptr<LentMemory> memory;
    std::uint64_t number = 0;
    std::size_t lent = 0;   // and counted
    bool held = false;      // it is being filled
    bool is_asked = false;  // somebody may have it: the kernel knows
  };
  using Blocks = std::list<Block>;

  // Nobody else has it. The kernel's word is asked for where there is no other.
  static bool is_free(Block& block);
  Filling take(std::size_t size);
  // nullptr: there is none, and none may be made.
  Block* find_free(std::size_t size);
  Block* make(std::size_t size);
  bool make_room(std::size_t size);
  Block* find(std::uint64_t number);

  std::mutex mutex_;
  Blocks blocks_;      // those that were looked at or lent longest ago first
  bool works_ = true;  // the kernel tells who has a block
  std::size_t bytes_ = 0;
  std::uint64_t next_ = 1;
};

}  // namespace monarch
