#include "transport/wire/step_page.h"

#include <new>

#include "transport/wire/lent_memory.h"

namespace monarch {

namespace {

using Count = std::atomic<std::uint64_t>;
static_assert(Count::is_always_lock_free, "two processes share it");

}  // namespace

Result<StepPage> make_step_page() {
  // Owner: the count, which lies in it.
  MONARCH_ASSIGN(std::shared_ptr<LentMemory> memory, LentMemory::make("monarch-steps", sizeof(Count)));
  StepPage page;
  MONARCH_ASSIGN(page.reader, memory->reader());
  auto* const count = new (memory->start()) Count(0);
  page.count = std::shared_ptr<Count>(std::move(memory), count);
  return page;
}

Result<SeenSteps> SeenSteps::map(int fd) {
  MONARCH_ASSIGN(const std::uint64_t size, lent_memory_size(fd));
  if (size != sizeof(Count)) return Error{ErrorCode::kInvalid, "the descriptor is no page that steps are counted in"};
  MONARCH_ASSIGN(auto page, MappedMemory::map(fd, sizeof(Count)));
  return SeenSteps(std::move(page));
}

std::uint64_t SeenSteps::read() const {
  return reinterpret_cast<const Count*>(page_->bytes().data())->load(std::memory_order_relaxed);
}

}  // namespace monarch
