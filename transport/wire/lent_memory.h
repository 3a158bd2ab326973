#pragma once

// LentMemory: memory that its maker alone can write, and that others map and read. It can be neither shrunk nor grown:
// who reads it never finds it gone. The kernel says whether anybody else has it.
//
// Thread: any, one at a time. Lifetime: what a reader has open or mapped stays when this ends.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class LentMemory {
 public:
  enum class Readers : std::uint8_t {
    kOnlyRead,
    kMayPin,  // who asks for it maps it writable as well: a driver of GPUs takes no other memory
  };

  // Of zeroes. `name`: as /proc shows it. The kernel needs F_SEAL_FUTURE_WRITE (Linux 5.1), leases, and /proc.
  static Result<std::unique_ptr<LentMemory>> make(const char* name, std::size_t size,
                                                  Readers readers = Readers::kOnlyRead);
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;
  ~LentMemory();

  char* start() const { return start_; }
  std::size_t size() const { return size_; }
  // A descriptor of its own for a reader, which can do nothing else with it.
  Result<UniqueFd> reader() const;
  // The same for one that may map it writable. kInvalid: its readers may not.
  Result<UniqueFd> pinning_reader() const;
  Readers readers() const { return readers_; }
  // Nobody has a descriptor or a mapping of it but this.
  bool is_alone() const;

 private:
  LentMemory(UniqueFd fd, char* start, std::size_t size, Readers readers)
      : fd_(std::move(fd)), start_(start), size_(size), readers_(readers) {}

  UniqueFd fd_;
  char* const start_;
  const std::size_t size_;
  const Readers readers_;
};

// The size of memory that nobody can shrink, and that this process cannot change; kInvalid: `fd` is no such memory.
Result<std::uint64_t> lent_memory_size(int fd);

}  // namespace monarch
