#pragma once

// DoorAnswers: what a turn of a post has for its callers. To those that speak version 3 of the door all answers of a
// turn go in one packet, or a few, each with the end of its call; what has a body beside it, and all that a door of an
// older version hears, goes by itself. The order is that in which it was said.
//
// Thread: a value of the core's; pure.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "transport/messages/post.h"
#include "worker/core/post/bodies.h"
#include "worker/core/post/post_limits.h"
#include "worker/core/post/post_steps.h"

namespace monarch {

// From which machine an answer is.
enum class Whence : std::uint8_t { kHere, kElsewhere };

class DoorAnswers {
 public:
  DoorAnswers(const PostLimits& limits, PostActions& out) : limits_(limits), out_(out) {}

  // A door that hears them together.
  void came(DoorId door) { doors_.insert(door); }
  void left(DoorId door);

  void say(DoorId door, std::uint64_t id, Rank rank, CallOutcome&& outcome, HeldBody body, Whence whence);
  // The call has ended. `refused`: see PostOver.
  void over(DoorId door, std::uint64_t id, std::string refused = {});
  // What waits for that door goes before anything else that it is told.
  void flush(DoorId door);
  // The turn is over.
  void flush();
  bool is_empty() const { return waiting_.empty(); }

 private:
  struct Waiting {
    PostAnswers message;
    std::size_t bytes = 0;         // of it, about
    std::vector<HeldBody> bodies;  // that are in it
  };

  const PostLimits limits_;
  PostActions& out_;
  std::set<DoorId> doors_;
  std::map<DoorId, Waiting> waiting_;
};

// Of an answer that goes with others, about.
inline std::size_t bytes_together(const CallOutcome& outcome) {
  constexpr std::size_t kBeside = 64;
  const std::size_t texts = outcome.type.size() + outcome.text.size() + outcome.traceback.size();
  return kBeside + texts + outcome.personal.data.size() + static_cast<std::size_t>(outcome.body.bytes);
}
// Whether it may: what it has is in the message, and is not much.
inline bool goes_with_others(const CallOutcome& outcome, const PostLimits& limits) {
  return outcome.body.way != BodyWay::kBeside && bytes_together(outcome) <= limits.together_bytes;
}

}  // namespace monarch
