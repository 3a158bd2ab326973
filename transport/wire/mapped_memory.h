#pragma once

// MappedMemory: the bytes of an open file or memfd, to be read where they lie.
//
// WARNING: bytes behind the end of a file that somebody has made shorter meanwhile are SIGBUS (mmap(2)). Sealed memory
// cannot be made shorter.
//
// Thread: any.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "transport/base/result.h"

namespace monarch {

class MappedMemory {
 public:
  // kWritable: until protect(), for who has to be shown memory that may be written, and writes none of it.
  enum class Access : std::uint8_t { kReadOnly, kWritable };

  // `size`: at least a byte. Owners: whoever reads there.
  static Result<std::shared_ptr<const MappedMemory>> map(int fd, std::size_t size, Access access = Access::kReadOnly);
  // Bytes from there on, of memory that nobody writes any more; it may be sealed before or while they are mapped so.
  static Result<std::shared_ptr<const MappedMemory>> map_part(int fd, std::uint64_t from, std::size_t size);
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory();

  // From now on it may only be read.
  Status protect() const;
  std::string_view bytes() const { return {static_cast<const char*>(start_) + skipped_, size_ - skipped_}; }

 private:
  MappedMemory(void* start, std::size_t size, std::size_t skipped) : start_(start), size_(size), skipped_(skipped) {}

  void* start_;
  std::size_t size_;
  std::size_t skipped_;  // before what was asked for
};

}  // namespace monarch
