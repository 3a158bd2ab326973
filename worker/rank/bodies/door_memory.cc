#include "worker/rank/bodies/door_memory.h"

#include <utility>

#include "transport/base/text.h"
#include "transport/messages/post.h"
#include "transport/wire/sealed_memory.h"
#include "worker/rank/rank_words.h"

namespace monarch {

namespace {

// Calls that are under way have their blocks back long before.
constexpr Duration kKeptForLong = Duration::seconds(10);

}  // namespace

Result<DoorMemory::Lent> DoorMemory::lend(const BodyPieces& pieces, bool counted) {
  if (counted) {
    if (auto made = made_.lend(pieces)) return Lent{std::move(made->as.memory), made->as.block, made->from};
  }
  const std::uint64_t bytes = pieces.bytes();
  auto filling = pool_.fill(bytes);
  if (!filling.ok()) {
    MONARCH_ASSIGN(UniqueFd sealed, make_sealed_memory("monarch-memory", pieces.joined()));
    return Lent{.memory = std::move(sealed)};
  }
  pieces.copy_to(filling->block->start());
  if (!counted) {
    MONARCH_ASSIGN(UniqueFd asked, pool_.lend(std::move(*filling)));
    return Lent{.memory = std::move(asked)};
  }
  note(bytes, filling->number != 0);
  auto lent = pool_.lend_counted(*filling);
  pool_.give_back(std::move(*filling));
  if (!lent.ok()) return std::move(lent).error();
  return Lent{.memory = std::move(lent->memory), .block = lent->block};
}

char* DoorMemory::make(std::size_t size) {
  if (size <= kBodyHereBytes) return nullptr;
  char* const start = made_.make(size);
  if (start != nullptr) note(size, made_.is_in_block(start));
  return start;
}

// A block of this size that was had says nothing of larger ones.
void DoorMemory::note(std::uint64_t bytes, bool in_block) {
  const std::uint64_t size = MemoryPool::block_bytes(bytes);
  {
    const std::lock_guard lock(mutex_);
    if (in_block) {
      short_since_.erase(size);
      return;
    }
    const Instant now = now_();
    const Instant since = short_since_.emplace(size, now).first->second;
    if (told_ || now - since < kKeptForLong) return;
    told_ = true;
  }
  say(text("a body of ", amount_text(bytes),
           " goes in new memory, as others will, which takes longer: all blocks that "
           "are lent have been read for ",
           to_text(kKeptForLong), ", or are filled; is a monarch::Buffer kept?"));
}

void DoorMemory::freed(std::uint64_t block, MemoryPool::Word word) {
  pool_.free(block, word);
  made_.freed(block, word);
}

void DoorMemory::give_up_lent() {
  made_.give_up_lent();
  pool_.give_up_lent();
  kept_.clear();
}

}  // namespace monarch
