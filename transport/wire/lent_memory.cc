#include "transport/wire/lent_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "transport/base/text.h"
#include "transport/wire/file_size_signal.h"
#include "transport/wire/sealed_memory.h"

namespace monarch {

namespace {

Result<UniqueFd> open_again(int fd, int how) {
  UniqueFd again(::open(text("/proc/self/fd/", fd).c_str(), how | O_CLOEXEC));
  if (!again.valid()) return errno_error("opening a memfd again", errno);
  return again;
}

}  // namespace

// WARNING: a memfd's first descriptor counts as no opening for writing, and a write lease is never given by it
// (check_conflicting_open, fs/locks.c); one that was opened by its name in /proc is like a file's.
Result<std::unique_ptr<LentMemory>> LentMemory::make(const char* name, std::size_t size, Readers readers) {
  const UniqueFd first(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!first.valid()) return errno_error("memfd_create", errno);
  {
    const FileSizeSignal refused_by_its_error;
    if (::ftruncate(first.get(), static_cast<off_t>(size)) != 0) {
      return errno_error(text("growing a memfd to ", size, " bytes"), errno);
    }
  }
  MONARCH_ASSIGN(UniqueFd fd, open_again(first.get(), O_RDWR));
  void* const start = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (start == MAP_FAILED) return errno_error(text("mapping ", size, " bytes of a memfd"), errno);
  std::unique_ptr<LentMemory> made(new LentMemory(std::move(fd), static_cast<char*>(start), size, readers));
  // Before it is lent: who has mapped it may write, and nobody may any more.
  const int writing = readers == Readers::kOnlyRead ? F_SEAL_FUTURE_WRITE : 0;
  if (::fcntl(made->fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | writing | F_SEAL_SEAL) != 0) {
    return errno_error("sealing a memfd", errno);
  }
  (void)::madvise(start, size, MADV_DONTFORK);  // a child would write what its parent lends
  (void)::madvise(start, size, MADV_HUGEPAGE);  // where the system gives them to shared memory
  return made;
}

LentMemory::~LentMemory() { (void)::munmap(start_, size_); }

Result<UniqueFd> LentMemory::reader() const { return open_again(fd_.get(), O_RDONLY); }

Result<UniqueFd> LentMemory::pinning_reader() const {
  if (readers_ == Readers::kMayPin) return open_again(fd_.get(), O_RDWR);
  return Error{ErrorCode::kInvalid, "its readers may not write it"};
}

bool LentMemory::is_alone() const {
  if (::fcntl(fd_.get(), F_SETLEASE, F_WRLCK) != 0) return false;
  (void)::fcntl(fd_.get(), F_SETLEASE, F_UNLCK);
  return true;
}

Result<std::uint64_t> lent_memory_size(int fd) {
  auto sealed = sealed_memory_size(fd);
  if (sealed.ok()) return sealed;
  return memory_size(fd, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
}

}  // namespace monarch
