#pragma once

// StackDumps: asks the workers for the stacks of ranks, and brings the answers to who asked. It is for viewers
// (`monarch stacks`) and for whoever is about to kill a rank that hangs. Each question is answered exactly once: with
// what the host says, or with why it said nothing. Questions are not journalled: one that a supervisor had open when it
// ended is asked again, or not, by whoever wants to know.
//
// Thread: the supervisor's loop. Lifetime: shorter than the loop's; what is open when it is destroyed is not answered.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "supervisor/core/job/job_core.h"
#include "supervisor/launch/fair_timer.h"
#include "supervisor/workers/output_relay.h"
#include "transport/base/result.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/stacks.h"

namespace monarch {

struct StackQuestion {
  RankId rank;
  Duration limit = limits::kStackLimit;     // for the debugger
  Duration patience = limits::kStackLimit;  // for the answer, however many are asked for on that host; at least `limit`
  bool all_threads = false;
  bool native = false;
};

class StackDumps {
 public:
  using Answer = std::function<void(const RankStacks&)>;
  // False: the host is not connected.
  using Send = std::function<bool(HostId, const TakeStacks&)>;

  StackDumps(EventLoop& loop, const JobCore& core, Send send) : loop_(loop), core_(core), send_(std::move(send)) {}
  StackDumps(const StackDumps&) = delete;
  StackDumps& operator=(const StackDumps&) = delete;

  // The rank is one of the job's. The answer comes from the loop, never from within, within `patience` and a moment for
  // the network.
  void ask(const StackQuestion& question, Answer answer);
  // All that a viewer asks for; kInvalid for ranks that the job does not have, or a limit that is out of bounds.
  Status ask_all(const StacksRequest& request, const Answer& answer);
  void on_stacks(StacksCame&& came);

  std::size_t open() const { return open_.size(); }

 private:
  struct Open {
    RankStacks told;  // all but the stacks
    Generation generation;
    Answer answer;
    std::unique_ptr<FairTimer> deadline;
  };
  void answer(std::uint64_t number, Stacks stacks);
  void answer_soon(std::uint64_t number, StacksEnd end, std::string detail);

  EventLoop& loop_;
  const JobCore& core_;
  Send send_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, Open> open_;
};

}  // namespace monarch
