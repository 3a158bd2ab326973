#include "worker/rank/bodies/door_body.h"

#include <utility>

#include "transport/base/text.h"
#include "transport/wire/lent_memory.h"

namespace monarch {

bool BodyReaders::any() {
  const std::lock_guard lock(mutex_);
  return readers_ > 0;
}

void BodyReaders::begin() {
  const std::lock_guard lock(mutex_);
  ++readers_;
}

void BodyReaders::end() {
  std::function<void()> tell;
  {
    const std::lock_guard lock(mutex_);
    if (--readers_ == 0) tell.swap(tell_);
  }
  if (tell) tell();
}

void BodyReaders::when_none(std::function<void()> tell) {
  {
    const std::lock_guard lock(mutex_);
    if (readers_ > 0) tell.swap(tell_);
  }
  if (tell) tell();
}

Result<DoorBody> DoorBody::take(CallBody body, std::vector<UniqueFd>& beside, KeptMappings* kept) {
  DoorBody taken;
  switch (body.way) {
    case BodyWay::kNone: return taken;
    case BodyWay::kHere: taken.here_ = std::move(body.here.data); return taken;
    case BodyWay::kBeside: break;
  }
  if (beside.empty()) return Error{ErrorCode::kInvalid, "a body without its descriptor"};
  const int fd = beside.front().get();
  std::shared_ptr<const MappedMemory> memory;
  const bool is_lent = body.block != 0;
  if (is_lent && kept != nullptr) {
    MONARCH_ASSIGN(memory, kept->map(fd));
  } else {
    MONARCH_ASSIGN(const std::uint64_t size, lent_memory_size(fd));
    const bool fits = body.bytes > 0 && body.from <= size && body.bytes <= size - body.from;
    if (fits) {
      MONARCH_ASSIGN(memory, MappedMemory::map(fd, body.from + body.bytes));
    }
  }
  const std::uint64_t size = memory == nullptr ? 0 : memory->bytes().size();
  if (body.bytes == 0 || body.from > size || body.bytes > size - body.from) {
    return Error{ErrorCode::kInvalid,
                 text("a body of ", body.bytes, " bytes from byte ", body.from, " on in memory that has fewer")};
  }
  const std::string_view bytes = memory->bytes().substr(body.from, body.bytes);
  taken.readers_ = std::make_shared<BodyReaders>(std::move(memory), bytes, is_lent);
  taken.reading_ = std::make_shared<BodyReading>(taken.readers_);
  return taken;
}

}  // namespace monarch
