#include "worker/post/body_store.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <cerrno>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch::post {

namespace {

constexpr rlim_t kPartOfDescriptors = 4;

}  // namespace

std::size_t BodyStore::most_descriptors() {
  rlimit files{};
  (void)::getrlimit(RLIMIT_NOFILE, &files);  // cannot fail for a name that exists
  return static_cast<std::size_t>(files.rlim_cur / kPartOfDescriptors);
}

BodyId BodyStore::add(std::string here) {
  const BodyId body(next_++);
  StoredPtr& stored = bodies_[body] = std::make_shared<Stored>(descriptors_);
  stored->bytes = here.size();
  stored->here = std::make_shared<const std::string>(std::move(here));
  return body;
}

BodyId BodyStore::add(UniqueFd memory, std::uint64_t bytes) {
  const BodyId body(next_++);
  StoredPtr& stored = bodies_[body] = std::make_shared<Stored>(descriptors_);
  stored->bytes = bytes;
  stored->fd = std::move(memory);
  if (++descriptors_ > most_descriptors_) map_without(*stored);
  return body;
}

// Where it cannot be mapped, it keeps its descriptor.
void BodyStore::map_without(Stored& stored) {
  if (!stored.fd.valid()) return;
  if (!stored.mapping) {
    auto mapping = MappedMemory::map(stored.fd.get(), stored.bytes);
    if (!mapping.ok()) return;
    stored.mapping = std::move(*mapping);
  }
  stored.drop_descriptor();
}

void BodyStore::be_short(bool is_short) {
  most_descriptors_ = is_short ? 0 : part_;
  if (!is_short) return;
  for (const auto& [body, stored] : bodies_) map_without(*stored);
}

Status BodyStore::take_here(CallBody& body) {
  if (body.way == BodyWay::kNone) {
    body.bytes = 0;
    return {};
  }
  if (body.here.data.size() != body.bytes) {
    return Error{ErrorCode::kInvalid,
                 text("a body of ", body.here.data.size(), " bytes that says it has ", body.bytes)};
  }
  body.at = add(std::exchange(body.here.data, {}));
  return {};
}

Status BodyStore::take(CallBody& body, UniqueFd beside) {
  if (body.way != BodyWay::kBeside) return take_here(body);
  if (!beside.valid()) return Error{ErrorCode::kInvalid, "a body that should come as a descriptor, and did not"};
  MONARCH_ASSIGN(const std::uint64_t bytes, lent_memory_size(beside.get()));
  // A block of a pool is no larger than it has to be; what is held is counted by the body.
  const bool fits = body.bytes > 0 && body.bytes <= bytes && bytes <= MemoryPool::block_bytes(body.bytes);
  if (!fits) return Error{ErrorCode::kInvalid, text("memory of ", bytes, " bytes for a body that has ", body.bytes)};
  body.at = add(std::move(beside), body.bytes);
  return {};
}

Status BodyStore::take(CallBody& body, std::string_view beside) {
  if (body.way != BodyWay::kBeside) return take_here(body);
  if (beside.size() != body.bytes) {
    return Error{ErrorCode::kInvalid, text("a frame of ", beside.size(), " bytes for a body that has ", body.bytes)};
  }
  if (beside.size() > kBodyHereBytes && descriptors_ < most_descriptors_) {
    if (auto lent = memory_.lend(beside); lent.ok()) {
      body.at = add(std::move(*lent), body.bytes);
      return {};
    }
  }
  body.at = add(std::string(beside));
  return {};
}

Status BodyStore::take(CallBody& body, BodyStream::Arrived arrived) {
  if (arrived.bytes != body.bytes) {
    return Error{ErrorCode::kInvalid, text(arrived.bytes, " bytes came for a body that has ", body.bytes)};
  }
  body.at = add(std::move(arrived.memory), arrived.bytes);
  return {};
}

// nullptr: it has none.
BodyStore::StoredPtr BodyStore::find(const CallBody& body) const {
  const auto found = bodies_.find(body.at);
  return found == bodies_.end() ? nullptr : found->second;
}

// False: it goes beside the message.
bool BodyStore::give_here(const StoredPtr& stored, CallBody& body) {
  body.way = BodyWay::kNone;
  if (stored == nullptr) return true;
  body.way = stored->here && stored->bytes <= kBodyHereBytes ? BodyWay::kHere : BodyWay::kBeside;
  if (body.way == BodyWay::kBeside) return false;
  body.here.data = *stored->here;
  return true;
}

LateDescriptor BodyStore::give(CallBody& body) {
  const StoredPtr stored = find(body);
  if (give_here(stored, body)) return {};
  return [this, stored] { return descriptor_of(*stored); };
}

Result<UniqueFd> BodyStore::descriptor_of(const Stored& stored) {
  if (!stored.fd.valid()) return memory_.lend(stored.view());
  UniqueFd copy(::fcntl(stored.fd.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return errno_error("the descriptor of a body", errno);
  return copy;
}

Status BodyStore::give(CallBody& body, std::vector<ZmqFrame>& beside) {
  const StoredPtr stored = find(body);
  if (give_here(stored, body)) return {};
  MONARCH_ASSIGN(const auto mapping, share(body));
  beside.push_back(mapping ? ZmqFrame::hold(mapping->bytes(), mapping) : ZmqFrame::hold(*stored->here, stored->here));
  return {};
}

Result<std::shared_ptr<const MappedMemory>> BodyStore::share(const CallBody& body) {
  const StoredPtr stored = find(body);
  if (stored == nullptr) return std::shared_ptr<const MappedMemory>();
  if (!stored->mapping && stored->fd.valid()) {
    MONARCH_ASSIGN(stored->mapping, MappedMemory::map(stored->fd.get(), stored->bytes));
  }
  return stored->mapping;
}

}  // namespace monarch::post
