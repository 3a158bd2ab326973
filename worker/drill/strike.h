#pragma once

// Strike: one injected fault on this host, in effect from begin() until undo(). What it stops goes on, what it starts
// ends and what it cuts passes again, also where this process is killed: a child of it waits for that and does the
// same.
//
// It decides nothing: worker/core/strike_plan does.
//
// Thread: the main one of a process that has no other, for it forks.

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"
#include "transport/messages/strike.h"
#include "worker/drill/struck_limits.h"

namespace monarch {

class Strike {
 public:
  // Once it is seen to be in effect. kTimeout: it is not within `patience`; what was done of it is taken back.
  static Result<std::unique_ptr<Strike>> begin(const StrikeOrder& order, Duration patience);
  ~Strike() { (void)undo(Duration::seconds(5)); }  // whoever wants to know calls it before
  Strike(const Strike&) = delete;
  Strike& operator=(const Strike&) = delete;

  const std::vector<pid_t>& struck() const { return struck_; }
  // Before the first blow; and when it was seen to be in effect.
  WallTime struck_at() const { return struck_at_; }
  WallTime seen_at() const { return seen_at_; }
  // Once it is seen not to be in effect any more. A second time it does nothing.
  Status undo(Duration patience);

 private:
  Strike() = default;

  Status hit(const StrikeOrder& order, Duration patience);
  Status lower(const StrikeOrder& order);
  Status keep_busy(std::uint32_t processes);
  Status cut(const StrikeOrder& order);
  Status guard();

  WallTime struck_at_;
  WallTime seen_at_;
  std::vector<pid_t> struck_;
  std::vector<UniqueFd> stopped_;                 // of those that are to go on
  std::vector<std::pair<pid_t, UniqueFd>> busy_;  // children
  StruckLimits limits_;
  std::string table_;  // of nft
  UniqueFd alive_;     // whose end the guarding child reads
  pid_t guard_ = 0;
};

}  // namespace monarch
