#include "worker/post/body_store.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch::post {

BodyId BodyStore::add(Stored stored) {
  const BodyId body(next_++);
  bodies_.emplace(body, std::move(stored));
  return body;
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
  body.at = add(Memory{.fd = std::move(beside), .bytes = body.bytes, .mapping = nullptr});
  return {};
}

Status BodyStore::take(CallBody& body, std::string_view beside) {
  if (body.way != BodyWay::kBeside) return take_here(body);
  if (beside.size() != body.bytes) {
    return Error{ErrorCode::kInvalid, text("a frame of ", beside.size(), " bytes for a body that has ", body.bytes)};
  }
  if (beside.size() <= kBodyHereBytes) {
    body.at = add(std::string(beside));
    return {};
  }
  MONARCH_ASSIGN(UniqueFd fd, memory_.lend(beside));
  body.at = add(Memory{.fd = std::move(fd), .bytes = body.bytes, .mapping = nullptr});
  return {};
}

Status BodyStore::take(CallBody& body, BodyStream::Arrived arrived) {
  if (arrived.bytes != body.bytes) {
    return Error{ErrorCode::kInvalid, text(arrived.bytes, " bytes came for a body that has ", body.bytes)};
  }
  body.at = add(Memory{.fd = std::move(arrived.memory), .bytes = arrived.bytes, .mapping = nullptr});
  return {};
}

// The memory that goes beside the message; nullptr when the message itself has all.
BodyStore::Memory* BodyStore::give_here(CallBody& body) {
  const auto found = bodies_.find(body.at);
  body.way = BodyWay::kNone;
  if (found == bodies_.end()) return nullptr;
  if (const auto* here = std::get_if<std::string>(&found->second)) {
    body.way = BodyWay::kHere;
    body.here.data = *here;
    return nullptr;
  }
  return std::get_if<Memory>(&found->second);
}

Status BodyStore::give(CallBody& body, std::vector<UniqueFd>& beside) {
  const Memory* const memory = give_here(body);
  if (memory == nullptr) return {};
  UniqueFd copy(::fcntl(memory->fd.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return errno_error("the descriptor of a body", errno);
  body.way = BodyWay::kBeside;
  beside.push_back(std::move(copy));
  return {};
}

Status BodyStore::give(CallBody& body, std::vector<ZmqFrame>& beside) {
  if (give_here(body) == nullptr) return {};
  MONARCH_ASSIGN(const auto mapping, share(body));
  body.way = BodyWay::kBeside;
  beside.push_back(ZmqFrame::hold(mapping->bytes(), mapping));
  return {};
}

Result<std::shared_ptr<const MappedMemory>> BodyStore::share(const CallBody& body) {
  const auto found = bodies_.find(body.at);
  Memory* const memory = found == bodies_.end() ? nullptr : std::get_if<Memory>(&found->second);
  if (memory == nullptr) return std::shared_ptr<const MappedMemory>();
  if (!memory->mapping) {
    MONARCH_ASSIGN(memory->mapping, MappedMemory::map(memory->fd.get(), memory->bytes));
  }
  return memory->mapping;
}

}  // namespace monarch::post
