#include "transport/wire/memory_pool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/base/text.h"
#include "transport/wire/sealed_memory.h"

namespace monarch {

namespace {

constexpr const char* kName = "monarch-memory";
constexpr std::size_t kAsked = 2;  // blocks that may be free: those that were lent longest ago

// WARNING: a memfd's first descriptor counts as no opening for writing, and a write lease is never given by it
// (check_conflicting_open, fs/locks.c); one that was opened by its name in /proc is like a file's.
UniqueFd open_again(int fd, int how) { return UniqueFd(::open(text("/proc/self/fd/", fd).c_str(), how | O_CLOEXEC)); }

}  // namespace

MemoryPool::~MemoryPool() {
  for (const Block& block : blocks_) unmake(block);
}

Result<MemoryPool::Block> MemoryPool::make(std::size_t size) {
  const UniqueFd first(::memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!first.valid()) return errno_error("memfd_create", errno);
  if (::ftruncate(first.get(), static_cast<off_t>(size)) != 0) return errno_error("growing a memfd", errno);
  Block block{.fd = open_again(first.get(), O_RDWR), .start = nullptr, .size = size};
  if (!block.fd.valid()) return errno_error("opening a memfd again", errno);
  void* const start = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, block.fd.get(), 0);
  if (start == MAP_FAILED) return errno_error("mapping a memfd", errno);
  block.start = static_cast<char*>(start);
  // Before it is lent: who has mapped it may write, and nobody may any more (Linux 5.1).
  if (::fcntl(block.fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) {
    const int error = errno;
    unmake(block);
    return errno_error("sealing a memfd", error);
  }
  (void)::madvise(start, size, MADV_DONTFORK);  // a child would fill what its parent lends
  (void)::madvise(start, size, MADV_HUGEPAGE);  // where the system gives them to shared memory
  return block;
}

void MemoryPool::unmake(const Block& block) { (void)::munmap(block.start, block.size); }

bool MemoryPool::is_free(const Block& block) {
  if (::fcntl(block.fd.get(), F_SETLEASE, F_WRLCK) != 0) return false;
  (void)::fcntl(block.fd.get(), F_SETLEASE, F_UNLCK);
  return true;
}

// Room for so many bytes more, by giving up what nobody has.
bool MemoryPool::make_room(std::size_t size) {
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    if (bytes_ + size <= kMostBytes && blocks_.size() < kBlocks) return true;
    if (!is_free(*block)) {
      ++block;
      continue;
    }
    bytes_ -= block->size;
    unmake(*block);
    block = blocks_.erase(block);
  }
  return bytes_ + size <= kMostBytes && blocks_.size() < kBlocks;
}

MemoryPool::Block MemoryPool::take(std::size_t size) {
  const std::lock_guard lock(mutex_);
  std::size_t asked = 0;
  for (auto block = blocks_.begin(); block != blocks_.end() && asked < kAsked; ++block) {
    if (block->size != size) continue;
    ++asked;
    if (!is_free(*block)) continue;
    Block taken = std::move(*block);
    blocks_.erase(block);
    return taken;
  }
  if (!make_room(size)) return {};
  auto made = make(size);
  if (!made.ok()) return {};
  bytes_ += size;
  return std::move(*made);
}

Result<UniqueFd> MemoryPool::lend(std::string_view bytes) {
  const std::size_t size = std::bit_ceil(std::max(bytes.size(), kLeastBytes));
  Block block = size <= kMostBytes ? take(size) : Block();
  if (block.start == nullptr) return make_sealed_memory(kName, bytes);
  std::memcpy(block.start, bytes.data(), bytes.size());
  UniqueFd lent = open_again(block.fd.get(), O_RDONLY);
  const int error = errno;
  {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(std::move(block));
  }
  if (!lent.valid()) return errno_error("opening memory for its reader", error);
  return lent;
}

std::size_t MemoryPool::bytes() {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

Result<std::uint64_t> lent_memory_size(int fd) {
  constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSize) != kSize || (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) == 0) {
    return Error{ErrorCode::kInvalid,
                 "the descriptor is no memfd that is sealed against writing, growing and shrinking"};
  }
  struct stat status {};
  if (::fstat(fd, &status) != 0) return errno_error("fstat of lent memory", errno);
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace monarch
