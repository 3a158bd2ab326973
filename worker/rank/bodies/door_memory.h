#pragma once

// DoorMemory: memory by which the bodies of a process' calls travel: what it lends, and what it keeps mapped of others.
//
// Thread: any.

#include <cstdint>
#include <mutex>

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
  DoorMemory() = default;
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
  // What was lent as that block is read no more, or was not sent.
  void freed(std::uint64_t block, MemoryPool::Word word = MemoryPool::Word::kSure);
  // A connection has ended: nobody says any more who reads what was lent.
  void give_up_lent();

  MadeMemory& made() { return made_; }
  KeptMappings& kept() { return kept_; }
  MemoryPool& pool() { return pool_; }

 private:
  void be_short(std::uint64_t bytes);

  MemoryPool pool_;
  MadeMemory made_{pool_};
  KeptMappings kept_;
  std::mutex mutex_;
  Instant short_since_ = Instant::never();  // since when no block was free
  bool told_ = false;                       // of that
};

}  // namespace monarch
