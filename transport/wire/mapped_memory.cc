#include "transport/wire/mapped_memory.h"

#include <sys/mman.h>

#include <cerrno>

#include "transport/base/text.h"

namespace monarch {

Result<std::shared_ptr<const MappedMemory>> MappedMemory::map(int fd, std::size_t size) {
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (start == MAP_FAILED) return errno_error(text("mapping ", size, " bytes"), errno);
  return std::shared_ptr<const MappedMemory>(new MappedMemory(start, size));
}

MappedMemory::~MappedMemory() { (void)::munmap(start_, size_); }

}  // namespace monarch
