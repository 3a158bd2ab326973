#include "worker/rank/bodies/kept_mappings.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "transport/wire/lent_memory.h"

namespace monarch {

namespace {

bool is_read(const std::shared_ptr<const MappedMemory>& memory) { return memory.use_count() > 1; }

}  // namespace

bool KeptMappings::make_room(std::size_t size) {
  const auto fits = [&] { return kept_.size() < kMostMappings && bytes_ + size <= kMostBytes; };
  for (auto kept = kept_.begin(); kept != kept_.end() && !fits();) {
    if (is_read(kept->memory)) {
      ++kept;
      continue;
    }
    bytes_ -= kept->memory->bytes().size();
    kept = kept_.erase(kept);
  }
  return fits();
}

Result<std::shared_ptr<const MappedMemory>> KeptMappings::map(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return errno_error("looking at memory that was lent", errno);
  const Name name{status.st_dev, status.st_ino};
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.name == name; });
  if (found != kept_.end()) {
    kept_.splice(kept_.end(), kept_, found);
    return found->memory;
  }
  MONARCH_ASSIGN(const std::uint64_t size, lent_memory_size(fd));
  if (size == 0) return Error{ErrorCode::kInvalid, "memory of no bytes was lent"};
  MONARCH_ASSIGN(std::shared_ptr<const MappedMemory> memory, MappedMemory::map(fd, size));
  if (!make_room(size)) return memory;
  kept_.push_back({name, memory});
  bytes_ += size;
  return memory;
}

void KeptMappings::clear() {
  const std::lock_guard lock(mutex_);
  for (auto kept = kept_.begin(); kept != kept_.end();) {
    if (is_read(kept->memory)) {
      ++kept;
      continue;
    }
    bytes_ -= kept->memory->bytes().size();
    kept = kept_.erase(kept);
  }
}

std::size_t KeptMappings::bytes() {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace monarch
