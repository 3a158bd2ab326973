#pragma once

// MappedMemory: the bytes of an open file or memfd, to be read where they lie.
//
// WARNING: bytes behind the end of a file that somebody has made shorter meanwhile are SIGBUS (mmap(2)). Sealed memory
// cannot be made shorter.
//
// Thread: any.

#include <cstddef>
#include <memory>
#include <string_view>

#include "transport/base/result.h"

namespace monarch {

class MappedMemory {
 public:
  // `size`: at least a byte. Owners: whoever reads there.
  static Result<std::shared_ptr<const MappedMemory>> map(int fd, std::size_t size);
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory();

  std::string_view bytes() const { return {static_cast<const char*>(start_), size_}; }

 private:
  MappedMemory(void* start, std::size_t size) : start_(start), size_(size) {}

  void* start_;
  std::size_t size_;
};

}  // namespace monarch
