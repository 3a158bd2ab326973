#pragma once

// DoorMemory: memory by which the bodies of a process' calls travel: what it lends, and what it keeps mapped of others.
//
// Thread: any.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "transport/base/clock.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"
#include "transport/wire/memory_pool.h"
#include "worker/rank/bodies/body_pieces.h"
#include "worker/rank/bodies/kept_mappings.h"
#include "worker/rank/bodies/made_memory.h"

namespace monarch {

class DoorMemory {
 public:
  explicit DoorMemory(Instant (*now)() = &boot_now) : now_(now) {}
  DoorMemory(const DoorMemory&) = delete;
  DoorMemory& operator=(const DoorMemory&) = delete;

  struct Lent {
    UniqueFd memory;
    std::uint64_t block = 0;  // its number; 0: it is not counted
    std::uint64_t from = 0;   // where the body begins
  };
  // A body, which is copied once unless it was made in memory of here. `counted`: who gets it says when nobody reads it
  // any more, and which bytes of the memory it is.
  Result<Lent> lend(const BodyPieces& pieces, bool counted);
  // Memory for so many bytes that a plugin fills, until made().drop(). nullptr: there is none, or they would go within
  // their message.
  char* make(std::size_t size);
  // What was lent as that block is read no more, or was not sent.
  void freed(std::uint64_t block, MemoryPool::Word word = MemoryPool::Word::kSure);
  // A connection has ended: nobody says any more who reads what was lent.
  void give_up_lent();

  MadeMemory& made() { return made_; }
  KeptMappings& kept() { return kept_; }
  MemoryPool& pool() { return pool_; }

 private:
  // Whether so many bytes go in a block. Where they have gone in none for long, one line says so.
  void note(std::uint64_t bytes, bool in_block);

  Instant (*const now_)();
  MemoryPool pool_;
  MadeMemory made_{pool_};
  KeptMappings kept_;
  std::mutex mutex_;
  std::map<std::uint64_t, Instant> short_since_;  // by the size of a block: since when none was free
  bool told_ = false;                             // of that
};

}  // namespace monarch
