#pragma once

// CheckReach: how `monarch-worker check` is reached on the hosts of a job by a process that is not its supervisor. Each
// launcher states it of its own hosts (reach_NAME()). A talk is a check of its own there: one request and one answer at
// a time, as often as one likes; its end, however it comes, has the host take back what was done for it.
//
// Thread: the loop's of whoever has it; what forks is the main thread of a process that has no other then. Lifetime:
// shorter than the loop's; its talks end before it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/spec/placement.h"
#include "supervisor/core/state/launch_failure.h"
#include "supervisor/launch/launchers.h"
#include "supervisor/launch/talk/timed_answer.h"
#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/check.h"

namespace monarch {

using CheckOutcome = std::variant<TimedAnswer, LaunchFailure>;

class HostTalk {
 public:
  using OnAnswer = std::function<void(const CheckOutcome& outcome)>;
  // The talk has ended while nothing was asked. The host takes back what was done for it.
  using OnLost = std::function<void(const LaunchFailure& why)>;

  HostTalk() = default;
  HostTalk(const HostTalk&) = delete;
  HostTalk& operator=(const HostTalk&) = delete;
  // Nothing is told any more. The check there reads the end of its input, and ends.
  virtual ~HostTalk() = default;

  // Where nothing is being asked. The answer comes by the loop, never within this call, and may end the talk; none
  // within four times the request's patience, once the check is reached, is a failure. After one there is nothing more
  // to ask.
  virtual void ask(const CheckRequest& request, OnAnswer on_answer) = 0;
};

// Nothing: this machine.
using Reached = std::optional<HostId>;

class CheckReach {
 public:
  CheckReach() = default;
  CheckReach(const CheckReach&) = delete;
  CheckReach& operator=(const CheckReach&) = delete;
  virtual ~CheckReach() = default;

  // A talk that cannot be had answers the first request with why. Of this machine one at a time: who asks for a second
  // is told so.
  virtual std::unique_ptr<HostTalk> open(Reached where, HostTalk::OnLost on_lost) = 0;
};

// All that is referred to outlives the reach.
struct ReachSurroundings {
  EventLoop& loop;
  const JobSpec& spec;                 // of the running job
  const std::vector<PoolHost>& hosts;  // by HostId, as they are called now
  std::string job;                     // its uuid, by which its processes are marked
  std::string job_id;
  std::string worker_path;            // of monarch-worker
  std::uint64_t seed = 0;             // of waits
  bool accept_new_host_keys = false;  // and keep them
};

// Before this process has a thread. kInvalid: the spec's author can mend it; kUnsupported: from here not all hosts of
// this job are reached.
Result<std::unique_ptr<CheckReach>> open_reach(const ReachSurroundings& around);

// The part that each launcher has: its own hosts.
class HostReach {
 public:
  HostReach() = default;
  HostReach(const HostReach&) = delete;
  HostReach& operator=(const HostReach&) = delete;
  virtual ~HostReach() = default;

  virtual std::unique_ptr<HostTalk> open(HostId host, HostTalk::OnLost on_lost) = 0;
  // Once there was a talk this process has threads, and forks no more.
  virtual bool has_threads() const { return false; }
};

// One for each launcher.
#define MONARCH_DECLARE_REACH(name) Result<std::unique_ptr<HostReach>> reach_##name(const ReachSurroundings& around);
MONARCH_LAUNCHERS(MONARCH_DECLARE_REACH)
#undef MONARCH_DECLARE_REACH

}  // namespace monarch
