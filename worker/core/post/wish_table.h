#pragma once

// WishTable: what processes at this host's door wish of idle slots, until the supervisor has answered, and which owners
// of claims are here. Both go into each report of the post: what is lost on the way is said again by the next. A
// process whose post was started again says its wishes anew.
//
// Thread: a value of the core's; pure.

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "transport/messages/claim.h"
#include "worker/core/post/post_steps.h"

namespace monarch {

class WishTable {
 public:
  // The process of this connection has claims, or has begun to wish for some.
  void came(DoorId door, ClaimOwner owner);
  void said(DoorId door, const PostWish& wish);
  void left(DoorId door);
  // By the supervisor; of a wish that does not wait any more it is nothing.
  void answered(const ClaimAnswer& answer);

  // The first of those that wait, as many as a report carries.
  std::vector<PostWish> reported() const;
  std::vector<ClaimOwner> owners() const;
  // Whether a report would say something else of wishes since this was asked last.
  bool take_changed() { return std::exchange(changed_, false); }

  using Answer = std::pair<DoorId, PostGranted>;
  std::vector<Answer> take_answers() { return std::exchange(answers_, {}); }

 private:
  struct Waiting {
    DoorId door;
    PostWish wish;
  };
  std::string why_not(DoorId door, const PostWish& wish) const;
  void drop(ClaimOwner owner, std::uint64_t number, const char* why);

  std::map<DoorId, ClaimOwner> owners_;
  std::vector<Waiting> waiting_;  // in the order in which they came
  std::vector<Answer> answers_;
  bool changed_ = false;
};

}  // namespace monarch
