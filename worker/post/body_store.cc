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
constexpr std::uint64_t kMostBefore = 64U << 10U;  // of memory, where a body does not begin with it

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

BodyId BodyStore::add(UniqueFd memory, const CallBody& body) {
  const BodyId number(next_++);
  StoredPtr& stored = bodies_[number] = std::make_shared<Stored>(descriptors_);
  stored->bytes = body.bytes;
  stored->from = body.from;
  stored->is_block = body.block != 0;
  stored->fd = std::move(memory);
  if (++descriptors_ > most_descriptors_) map_without(*stored);
  return number;
}

// In memory of this process, which begins with it.
BodyId BodyStore::add_own(UniqueFd memory, CallBody& body, std::uint64_t block) {
  body.from = 0;
  body.block = block;
  return add(std::move(memory), body);
}

Status BodyStore::map(Stored& stored) {
  if (stored.mapping) return {};
  MONARCH_ASSIGN(stored.mapping, MappedMemory::map(stored.fd.get(), stored.from + stored.bytes));
  return {};
}

// Where it cannot be mapped, it keeps its descriptor. One that is large does always: a copy of it would take too long,
// and few are there at a time.
void BodyStore::map_without(Stored& stored) {
  if (stored.bytes <= kFarBodyBytes && stored.fd.valid() && map(stored).ok()) stored.drop_descriptor();
}

void BodyStore::be_short(bool is_short) {
  most_descriptors_ = is_short ? 0 : part_;
  if (!is_short) return;
  for (const auto& [body, stored] : bodies_) map_without(*stored);
}

BodyStore::Use::~Use() {
  mapping.reset();
  // So many are never on their way: what is would be kept until its lender leaves.
  if (unused != nullptr) (void)unused->put(body);
}

bool BodyStore::free(BodyId body) {
  const auto found = bodies_.find(body);
  if (found == bodies_.end()) return true;
  const std::weak_ptr<Use> use = found->second->use;
  bodies_.erase(found);
  if (use.expired()) return true;
  used_.emplace(body, use);
  return false;
}

bool BodyStore::is_unused(BodyId body) {
  const auto found = used_.find(body);
  if (found == used_.end() || !found->second.expired()) return false;
  used_.erase(found);
  return true;
}

void BodyStore::drop(const CallBody& body) {
  (void)free(body.at);
  if (body.block != 0) memory_.free(body.block);
}

Status BodyStore::take_here(CallBody& body) {
  body.from = 0;
  body.block = 0;
  if (body.way == BodyWay::kNone) {
    body.bytes = 0;
    return {};
  }
  if (body.here.data.size() != body.bytes) {
    return Error{ErrorCode::kInvalid,
                 text("a body of ", body.here.data.size(), " bytes that says it has ", body.bytes)};
  }
  body.way = body.bytes <= kBodyHereBytes ? BodyWay::kHere : BodyWay::kBeside;
  body.at = add(std::exchange(body.here.data, {}));
  return {};
}

Status BodyStore::take(CallBody& body, UniqueFd beside) {
  if (body.way != BodyWay::kBeside) return take_here(body);
  if (!beside.valid()) return Error{ErrorCode::kInvalid, "a body that should come as a descriptor, and did not"};
  MONARCH_ASSIGN(const std::uint64_t bytes, lent_memory_size(beside.get()));
  // A block of a pool is no larger than it has to be; what is held is counted by the body.
  const std::uint64_t end = body.from + body.bytes;
  const bool fits = body.bytes > 0 && body.bytes <= bytes && body.from <= kMostBefore && end <= bytes &&
                    bytes <= MemoryPool::block_bytes(end);
  if (!fits) {
    return Error{ErrorCode::kInvalid, text("memory of ", bytes, " bytes for a body that has ", body.bytes,
                                           body.from == 0 ? "" : text(", from ", body.from, " on"))};
  }
  body.at = add(std::move(beside), body);
  return {};
}

Status BodyStore::take(CallBody& body, std::string_view beside) {
  if (body.way != BodyWay::kBeside) return take_here(body);
  if (beside.size() != body.bytes) {
    return Error{ErrorCode::kInvalid, text("a frame of ", beside.size(), " bytes for a body that has ", body.bytes)};
  }
  if (beside.size() > kBodyHereBytes && descriptors_ < most_descriptors_) {
    if (auto lent = memory_.lend_counted(beside); lent.ok()) {
      body.at = add_own(std::move(lent->memory), body, lent->block);
      return {};
    }
  }
  body.way = BodyWay::kHere;
  body.here.data = beside;
  return take_here(body);
}

Status BodyStore::take(CallBody& body, BodyStream::Arrived arrived) {
  if (arrived.bytes != body.bytes) {
    return Error{ErrorCode::kInvalid, text(arrived.bytes, " bytes came for a body that has ", body.bytes)};
  }
  body.way = BodyWay::kBeside;
  memory_.count(arrived.block);
  body.at = add_own(std::move(arrived.memory), body, arrived.block);
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
  body.from = 0;
  if (stored == nullptr) return true;
  body.way = stored->here && stored->bytes <= kBodyHereBytes ? BodyWay::kHere : BodyWay::kBeside;
  if (body.way == BodyWay::kBeside) return false;
  body.here.data = *stored->here;
  return true;
}

LateDescriptor BodyStore::give(CallBody& body) {
  const StoredPtr stored = find(body);
  if (give_here(stored, body)) return {};
  // Who hears of no block hears of no beginning.
  if (body.block == 0 && stored->from != 0) return [this, stored] { return copy_of(*stored); };
  body.from = stored->from;
  return [this, stored] { return descriptor_of(*stored); };
}

Result<UniqueFd> BodyStore::descriptor_of(const Stored& stored) {
  if (!stored.fd.valid())
    return memory_.lend(stored.mapping ? stored.mapping->bytes() : std::string_view(*stored.here));
  UniqueFd copy(::fcntl(stored.fd.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return errno_error("the descriptor of a body", errno);
  return copy;
}

Result<UniqueFd> BodyStore::copy_of(Stored& stored) {
  MONARCH_TRY(map(stored));
  return memory_.lend(stored.view());
}

Status BodyStore::give(CallBody& body, std::vector<ZmqFrame>& beside) {
  const StoredPtr stored = find(body);
  body.block = 0;
  if (give_here(stored, body)) return {};
  MONARCH_ASSIGN(const Shared shared, share(body));
  beside.push_back(shared.memory ? ZmqFrame::hold(shared.bytes, shared.memory)
                                 : ZmqFrame::hold(*stored->here, stored->here));
  return {};
}

Result<BodyStore::Shared> BodyStore::share(const CallBody& body) {
  const StoredPtr stored = find(body);
  if (stored == nullptr) return Shared();
  if (stored->fd.valid()) MONARCH_TRY(map(*stored));
  if (!stored->mapping) return Shared();
  if (!stored->is_block) return Shared{stored->view(), stored->mapping};
  std::shared_ptr<Use> use = stored->use.lock();
  if (use == nullptr) {
    use = std::make_shared<Use>(stored->mapping, body.at, unused_);
    stored->use = use;
  }
  return Shared{stored->view(), std::move(use)};
}

}  // namespace monarch::post
