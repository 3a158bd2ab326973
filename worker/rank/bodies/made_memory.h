#pragma once

// MadeMemory: memory that a plugin fills itself and that goes to others as it is. Its bytes begin at a page, and around
// them is room for what a body has around its only large piece, so that the body is there without a copy.
//
// WARNING: what was sent is read by others: from then on nothing of it is written, but where nobody reads it any more.
//
// Thread: any.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "transport/wire/memory_pool.h"
#include "worker/rank/bodies/body_pieces.h"

namespace monarch {

class MadeMemory {
 public:
  // Bytes around those of the plugin.
  static constexpr std::size_t kBefore = 4096;
  static constexpr std::size_t kBehind = 4096;
  // Each has a descriptor, and others of this process need some.
  static constexpr std::size_t kMost = 256;

  explicit MadeMemory(MemoryPool& pool) : pool_(pool) {}
  MadeMemory(const MadeMemory&) = delete;
  MadeMemory& operator=(const MadeMemory&) = delete;

  // Where so many bytes are, until drop(). nullptr: there is no memory to be had, or too many are there already.
  char* make(std::size_t size);
  void drop(const char* start);
  // Else they are in memory of their own.
  bool is_in_block(const char* start);

  struct Lent {
    MemoryPool::Lent as;
    std::uint64_t from = 0;  // where the body begins
  };
  // Nothing: these pieces are no body that lies here, and are to be copied.
  std::optional<Lent> lend(const BodyPieces& pieces);
  // One that was lent as that block is read no more. Where that is unsure, it may be read always.
  void freed(std::uint64_t block, MemoryPool::Word word);
  // Nobody says any more who reads what was lent.
  void give_up_lent();

 private:
  struct Made {
    MemoryPool::Filling filling;
    std::size_t size = 0;
    std::size_t lent = 0;         // how often it is read
    bool is_read_always = false;  // nobody says when it is not
  };
  // The bytes around those of the plugin, written where they may be. False: others are there, and are read.
  static bool surround(Made& made, const std::vector<monarch_bytes_v1>& before,
                       const std::vector<monarch_bytes_v1>& behind);

  MemoryPool& pool_;
  std::mutex mutex_;
  std::map<const char*, Made> made_;           // by where their bytes are
  std::map<std::uint64_t, Made*> of_a_block_;  // those that lie in a block, by its number
};

}  // namespace monarch
