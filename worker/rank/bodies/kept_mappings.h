#pragma once

// KeptMappings: the blocks of others that this process has mapped. A block comes again and again, and is mapped once:
// its pages are there the next time. Only what is lent until its reader says that it reads no more may be kept so.
//
// Thread: any.

#include <sys/types.h>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>

#include "transport/base/result.h"
#include "transport/wire/mapped_memory.h"

namespace monarch {

class KeptMappings {
 public:
  static constexpr std::size_t kMostMappings = 64;
  static constexpr std::size_t kMostBytes = 256U << 20U;

  KeptMappings() = default;
  KeptMappings(const KeptMappings&) = delete;
  KeptMappings& operator=(const KeptMappings&) = delete;

  // All of that memory; kInvalid: it is none that is lent. Where too much is kept, that which was asked for longest ago
  // is let go; what somebody reads is not, and where that is too much already this is mapped for who asks alone.
  Result<std::shared_ptr<const MappedMemory>> map(int fd);
  // What nobody reads is let go.
  void clear();
  std::size_t bytes();

 private:
  // Which memory it is. While it is mapped no other has that name.
  struct Name {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const Name&) const = default;
  };
  struct Kept {
    Name name;
    std::shared_ptr<const MappedMemory> memory;
  };

  bool make_room(std::size_t size);

  std::mutex mutex_;
  std::list<Kept> kept_;  // what was asked for longest ago first
  std::size_t bytes_ = 0;
};

}  // namespace monarch
