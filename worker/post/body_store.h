#pragma once

// BodyStore: the bytes of calls and their results, as a post has them: small ones in its memory, larger ones in memory
// that nobody changes, which is given on as a descriptor and which ranks of this host share. It knows numbers and
// bytes, and nothing of what they are for.
//
// Thread: the loop's.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/messages/post.h"
#include "transport/peers/body_stream.h"
#include "transport/wire/mapped_memory.h"
#include "transport/wire/memory_pool.h"
#include "transport/zmq/frame.h"

namespace monarch::post {

class BodyStore {
 public:
  // What came with a message at the door: `body` says how; `beside` is its descriptor. Fills in body.at.
  Status take(CallBody& body, UniqueFd beside);
  // What came with a message of another post.
  Status take(CallBody& body, std::string_view beside);
  // What came by a connection for bodies.
  Status take(CallBody& body, BodyStream::Arrived arrived);
  void free(BodyId body) { bodies_.erase(body); }
  MemoryPool& pool() { return memory_; }

  // For a message to the door: fills in how the body travels; with a descriptor where it goes beside.
  Status give(CallBody& body, std::vector<UniqueFd>& beside);
  // The same for another post, without a copy of the bytes.
  Status give(CallBody& body, std::vector<ZmqFrame>& beside);
  // Its bytes where they lie; nullptr: it is small, and in this process's memory.
  Result<std::shared_ptr<const MappedMemory>> share(const CallBody& body);

  std::size_t size() const { return bodies_.size(); }

 private:
  struct Memory {
    UniqueFd fd;
    std::uint64_t bytes = 0;
    std::shared_ptr<const MappedMemory> mapping;  // owners: this, and the frames that are on their way
  };
  using Stored = std::variant<std::string, Memory>;

  BodyId add(Stored stored);
  Status take_here(CallBody& body);
  Memory* give_here(CallBody& body);

  MemoryPool memory_;  // for what other hosts send
  std::map<BodyId, Stored> bodies_;
  std::uint64_t next_ = 1;
};

}  // namespace monarch::post
