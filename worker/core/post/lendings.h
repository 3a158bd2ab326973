#pragma once

// Lendings: which bodies of a post are blocks of a lender, and who reads them at its door. A lender (a process at the
// door, or the post itself, of what comes from other hosts) writes in a block again once it is told that it is free:
// the post has no use for its bytes any more, and each reader has let it go. Readers that do not say so, since they
// speak an older version of the door, and those whose connection has ended make that unsure: then only the kernel
// knows.
//
// Thread: a value of the core's; pure.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "transport/messages/post.h"
#include "worker/core/post/post_steps.h"

namespace monarch {

class Lendings {
 public:
  static constexpr std::size_t kReadByADoor = 4'096;  // that are counted; with more of them it is unsure

  // What a reader has got: the arguments of a delivery, or a rank's answer to a call.
  struct Reading {
    std::uint64_t delivery = 0;
    std::uint64_t id = 0;
    std::uint32_t rank = 0;
    auto operator<=>(const Reading&) const = default;
  };

  explicit Lendings(PostActions& out) : out_(out) {}

  // A door that says what it has let go, and hears what is free.
  void came(DoorId door) { doors_.insert(door); }
  void left(DoorId door);

  // A body that has come. Nothing: it is the post's own block. Of a door that has not come so it is none.
  void begin(const CallBody& body, std::optional<DoorId> lender);
  bool has(BodyId body) const { return lendings_.contains(body); }
  // It is given to that door. False: as memory that is no block.
  bool give(BodyId body, DoorId door, const Reading& reading);
  void let_go(DoorId door, const Reading& reading);
  // The post has no use for its bytes any more.
  void gone(BodyId body);

  std::size_t size() const { return lendings_.size(); }

 private:
  struct Lending {
    std::optional<DoorId> lender;
    std::uint64_t block = 0;
    std::size_t readers = 0;
    bool used = true;  // by the post
    bool unsure = false;
  };
  using All = std::map<BodyId, Lending>;
  void look_at(All::iterator lending);
  void lose_reader(BodyId body, bool unsure);

  PostActions& out_;
  All lendings_;
  std::set<DoorId> doors_;
  std::map<DoorId, std::map<Reading, BodyId>> reading_;
};

}  // namespace monarch
