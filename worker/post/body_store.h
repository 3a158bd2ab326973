#pragma once

// BodyStore: the bytes of calls and their results, as a post has them: small ones in its memory, larger ones in memory
// that nobody changes, which is given on as a descriptor and which ranks of this host share. So many have a descriptor
// each; the others are kept without, and copied into memory that has one when their turn has come to be given on. It
// knows numbers and bytes, and nothing of what they are for.
//
// Thread: the loop's.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/inbox.h"
#include "transport/messages/post.h"
#include "transport/peers/body_stream.h"
#include "transport/wire/mapped_memory.h"
#include "transport/wire/memory_pool.h"
#include "transport/wire/seqpacket_message.h"
#include "transport/zmq/frame.h"

namespace monarch::post {

class BodyStore {
 public:
  // A part of what a process may have open.
  static std::size_t most_descriptors();

  explicit BodyStore(std::size_t descriptors = most_descriptors()) : part_(descriptors), most_descriptors_(part_) {}
  BodyStore(const BodyStore&) = delete;
  BodyStore& operator=(const BodyStore&) = delete;

  // What came with a message at the door: `body` says how; `beside` is its descriptor. Fills in body.at, and for all of
  // these the way on which it goes on.
  Status take(CallBody& body, UniqueFd beside);
  // What came with a message of another post.
  Status take(CallBody& body, std::string_view beside);
  // What came by a connection for bodies.
  Status take(CallBody& body, BodyStream::Arrived arrived);
  // True: nothing in this process reads it any more; else `unused` has its number once that is so.
  bool free(BodyId body);
  // One that came from another host, and that nobody has heard of.
  void drop(const CallBody& body);
  // Where the numbers go of bodies that were on their way when they were freed. It outlives all that is on its way.
  void tell_unused(Inbox<BodyId>& unused) { unused_ = &unused; }
  // Whether one that was told so is used no more.
  bool is_unused(BodyId body);
  MemoryPool& pool() { return memory_; }
  // While descriptors are short no body has one.
  void be_short(bool is_short);

  // For a message to the door: fills in how the body travels. Nothing: nothing goes beside it. It may be freed before
  // the descriptor is made.
  LateDescriptor give(CallBody& body);
  // The same for another post, without a copy of the bytes.
  Status give(CallBody& body, std::vector<ZmqFrame>& beside);
  // Its bytes where they lie, and what keeps them there; none: they lie in this process's memory.
  struct Shared {
    std::string_view bytes;
    std::shared_ptr<const void> memory;
  };
  Result<Shared> share(const CallBody& body);

  std::size_t size() const { return bodies_.size(); }
  // Of bodies, whether they were freed or are about to be given on.
  std::size_t descriptors() const { return descriptors_; }

 private:
  // Somebody who reads the bytes from where they lie, perhaps on another thread. Owners: those.
  struct Use {
    Use(std::shared_ptr<const MappedMemory> what, BodyId which, Inbox<BodyId>* where)
        : mapping(std::move(what)), body(which), unused(where) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();
    std::shared_ptr<const MappedMemory> mapping;
    const BodyId body;
    Inbox<BodyId>* const unused;
  };
  // Bytes, in one of three places.
  struct Stored {
    explicit Stored(std::size_t& count) : descriptors(count) {}
    Stored(const Stored&) = delete;
    Stored& operator=(const Stored&) = delete;
    ~Stored() { drop_descriptor(); }
    void drop_descriptor() {
      if (fd.valid()) --descriptors;
      fd.reset();
    }
    std::string_view view() const { return mapping ? mapping->bytes().substr(from) : std::string_view(*here); }

    std::size_t& descriptors;
    std::uint64_t bytes = 0;
    std::uint64_t from = 0;  // where they begin in the memory
    bool is_block = false;   // a lender waits to write there
    std::weak_ptr<Use> use;
    // Owners: this, and the frames that are on their way.
    std::shared_ptr<const std::string> here;
    std::shared_ptr<const MappedMemory> mapping;
    UniqueFd fd;
  };
  // Owners: the store, and what is about to be given on.
  using StoredPtr = std::shared_ptr<Stored>;

  BodyId add(std::string here);
  BodyId add(UniqueFd memory, const CallBody& body);
  BodyId add_own(UniqueFd memory, CallBody& body, std::uint64_t block);
  static Status map(Stored& stored);
  Status take_here(CallBody& body);
  StoredPtr find(const CallBody& body) const;
  static bool give_here(const StoredPtr& stored, CallBody& body);
  static void map_without(Stored& stored);
  Result<UniqueFd> descriptor_of(const Stored& stored);
  Result<UniqueFd> copy_of(Stored& stored);

  const std::size_t part_;
  std::size_t most_descriptors_;
  std::size_t descriptors_ = 0;
  MemoryPool memory_;  // for what other hosts send
  std::map<BodyId, StoredPtr> bodies_;
  std::map<BodyId, std::weak_ptr<Use>> used_;  // those that were freed, and are on their way
  Inbox<BodyId>* unused_ = nullptr;
  std::uint64_t next_ = 1;
};

}  // namespace monarch::post
