#pragma once

// Guests: who serves at this post and is no rank of the job. Each has a number as long as its connection lasts; nobody
// else is ever called by it.
//
// Thread: a value of the core's; pure.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "transport/base/ids.h"
#include "transport/messages/post.h"
#include "worker/core/post/post_steps.h"

namespace monarch {

class Guests {
 public:
  static constexpr std::uint64_t kGeneration = 1;  // of each: what ends with its connection has no other
  static constexpr const char* kHasLeft = "it has left";
  static constexpr const char* kNoCards = "a guest has no cards";

  explicit Guests(const PostStart& start);

  RankId came(DoorId door);
  // Nothing: that is no guest's.
  std::optional<RankId> left(DoorId door);

  bool has(Rank number) const { return here_.contains(number); }
  std::string why_lost(Rank number) const;
  std::size_t size() const { return doors_.size(); }

 private:
  std::uint32_t first_;
  std::uint32_t next_;
  std::map<DoorId, Rank> doors_;
  std::set<Rank> here_;
};

}  // namespace monarch
