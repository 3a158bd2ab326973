#pragma once

// Sealed memory: bytes in a memfd that nobody can change, shrink or grow any more, its maker included. So a receiver
// can read them without fear of a writer.
//
// Thread: any.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

Result<UniqueFd> make_sealed_memory(const char* name, std::string_view bytes);

// For what was written piece by piece.
Status seal_memory(int fd);

// In bytes; kInvalid unless `fd` is a memfd with all these seals (fcntl(2)).
Result<std::uint64_t> memory_size(int fd, int seals);
// In bytes; kInvalid unless `fd` is sealed memory.
Result<std::uint64_t> sealed_memory_size(int fd);

// kInvalid unless `fd` is sealed memory of exactly `size` bytes. The caller bounds `size`.
Result<std::string> read_sealed_memory(int fd, std::size_t size);

}  // namespace monarch
