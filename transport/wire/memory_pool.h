#pragma once

// MemoryPool: memory in which bytes go to other processes of this machine, which only read them. A block is touched
// once and used again as soon as nobody else has it: pages that are new cost more than what is copied into them.
//
// What is lent may be neither shrunk nor grown, and its reader can change no byte of it. While he has it, nobody does:
// the kernel says whether a block is open anywhere else (a write lease, fcntl(2)). Where it does not say so, or the
// pool has no room, the bytes go in sealed memory of their own.
//
// Thread: any.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string_view>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class MemoryPool {
 public:
  static constexpr std::size_t kLeastBytes = 64U << 10U;  // of a block; sizes are powers of two
  static constexpr std::size_t kMostBytes = 128U << 20U;  // of the largest, and of all
  static constexpr std::size_t kBlocks = 64;

  MemoryPool() = default;
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool();

  // A descriptor, for reading, of memory that begins with these bytes; there may be more behind them.
  Result<UniqueFd> lend(std::string_view bytes);
  // What the blocks take, whether they are lent or not.
  std::size_t bytes();

 private:
  struct Block {
    UniqueFd fd;
    char* start = nullptr;
    std::size_t size = 0;
  };

  static Result<Block> make(std::size_t size);
  static void unmake(const Block& block);
  static bool is_free(const Block& block);
  // One that nobody else has; without a start: there is none, and none may be made.
  Block take(std::size_t size);
  bool make_room(std::size_t size);

  std::mutex mutex_;
  std::deque<Block> blocks_;  // those that were lent longest ago first
  std::size_t bytes_ = 0;     // of all, also of those that are being filled
};

// The size of memory that nobody can shrink, and that this process cannot change; kInvalid: `fd` is no such memory.
Result<std::uint64_t> lent_memory_size(int fd);

}  // namespace monarch
