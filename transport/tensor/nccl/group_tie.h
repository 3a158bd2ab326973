#pragma once

// GroupTie: what a group of NCCL's hears of its members' ends, and says of its own.
//
// Thread: any. Lifetime: that of its last owner.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "transport/base/result.h"
#include "transport/base/time.h"

namespace monarch::tensor {

class GroupTie {
 public:
  GroupTie() = default;
  GroupTie(const GroupTie&) = delete;
  GroupTie& operator=(const GroupTie&) = delete;
  virtual ~GroupTie() = default;

  // Who is lost and why, once somebody is.
  virtual std::optional<std::string> lost() = 0;
  // Until somebody is lost, or `stop` holds, which is asked again after each wake().
  virtual void wait(const std::function<bool()>& stop) = 0;
  virtual void wake() = 0;
  // Until all members are here, at the end of their work: who leaves then is missed by nobody. kGone: one is lost
  // before.
  virtual Status finish(Instant until) = 0;
  // This member has failed, and takes part no more: all others are told, for they may wait for it in NCCL.
  virtual void leave(const std::string& why) = 0;
};

// Owners: the group of NCCL's, its thread, and who has met.
using SharedGroupTie = std::shared_ptr<GroupTie>;

}  // namespace monarch::tensor
