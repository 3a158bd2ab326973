#include "transport/wire/mapped_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "transport/base/text.h"

namespace monarch {

Result<std::shared_ptr<const MappedMemory>> MappedMemory::map(int fd, std::size_t size, Access access) {
  const int may = access == Access::kWritable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const start = ::mmap(nullptr, size, may, MAP_SHARED, fd, 0);
  if (start == MAP_FAILED) return errno_error(text("mapping ", size, " bytes"), errno);
  return std::shared_ptr<const MappedMemory>(new MappedMemory(start, size, 0));
}

// WARNING: a shared mapping of a descriptor that may write counts as a writer, and nothing is sealed against writing
// while there is one; before Linux 6.7 nothing that is sealed so is mapped shared at all (fcntl(2), F_SEAL_WRITE).
Result<std::shared_ptr<const MappedMemory>> MappedMemory::map_part(int fd, std::uint64_t from, std::size_t size) {
  static const auto kPage = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto skipped = static_cast<std::size_t>(from % kPage);
  void* const start = ::mmap(nullptr, skipped + size, PROT_READ, MAP_PRIVATE, fd, static_cast<off_t>(from - skipped));
  if (start == MAP_FAILED) return errno_error(text("mapping ", size, " bytes from ", from, " on"), errno);
  return std::shared_ptr<const MappedMemory>(new MappedMemory(start, skipped + size, skipped));
}

Status MappedMemory::protect() const {
  if (::mprotect(start_, size_, PROT_READ) == 0) return {};
  return errno_error(text("protecting ", size_, " bytes"), errno);
}

MappedMemory::~MappedMemory() { (void)::munmap(start_, size_); }

}  // namespace monarch
