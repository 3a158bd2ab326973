#pragma once

// StruckLimits: limits of processes that were lowered to what these have now, and what they were before.
//
// Thread: one.

#include <sys/resource.h>

#include <vector>

#include "transport/base/result.h"
#include "transport/messages/strike.h"
#include "transport/process/process_scan.h"

namespace monarch {

class StruckLimits {
 public:
  static constexpr rlim_t kMoreMemory = 1U << 20U;  // than it has: what it is about to do still fits

  // What it has now, and what it is to have. kNoFiles: no descriptor above the number of those that are open.
  // kNoMemory: kMoreMemory more.
  Status plan(const ProcessEntry& process, StrikeWhat what);
  // Of all that were planned; those that have the limit then.
  std::vector<pid_t> lower();
  // Of those that live; each that has it back is forgotten. kTimeout: one has another limit than it had.
  Status restore();

 private:
  struct Lowered {  // or about to be
    ProcessEntry process;
    __rlimit_resource resource = RLIMIT_NOFILE;
    rlimit before{};
    rlimit now{};
  };
  std::vector<Lowered> lowered_;
};

}  // namespace monarch
