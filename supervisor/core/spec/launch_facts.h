#pragma once

// LaunchFacts: what the cores, and everybody who does not launch, know of a job's launcher. Each launcher states them
// of its own part of the spec; nobody asks which one it is.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/time.h"

namespace monarch {

// What warms a spare: run once on each, as soon as it is connected.
struct PrepareSpec {
  std::vector<std::string> program;  // none: nothing is run
  Duration timeout = Duration::seconds(600);
  bool operator==(const PrepareSpec&) const = default;
};

// The hosts that a batch system gave to one of its jobs.
struct Allocation {
  std::uint32_t job = 0;           // the batch system's id of it
  std::vector<std::string> nodes;  // distinct, in the batch system's order
  bool operator==(const Allocation&) const = default;
};

// What becomes of the job when who gave its hosts takes them back, or its time is over.
enum class OnPreempt : std::uint8_t {
  kStop,
  kRequeue,    // the same job of the batch system goes back into its queue
  kSuccessor,  // another one is submitted
};
constexpr OnPreempt monarch_enum_max(OnPreempt) { return OnPreempt::kSuccessor; }
// As a spec writes it: "requeue".
std::string_view to_text(OnPreempt action);

struct LaunchFacts {
  std::string name = "local";         // of the launcher, as a spec writes it
  std::vector<std::string> hosts;     // names of the pool's first hosts, as far as they are known
  std::string unnamed;                // the others are called so, with a number behind it
  std::optional<std::uint32_t> pool;  // hosts in it; nothing: need + spares
  std::uint32_t spares = 0;
  PrepareSpec prepare;
  // All hosts are this machine, and share what it has; else each has a disk and addresses of its own.
  bool one_machine = true;
  // Of each worker it is known sooner or later that it has ended; else that may never be.
  bool proves_ends = true;
  bool tunnels = false;  // `control.via: ssh` can be had
  // `supervisor.on: first` can be had: who launches may be another process than the supervisor.
  bool outlasts = false;
  bool foretells = false;      // SIGTERM at a worker says that its machine is taken back
  bool is_visited = false;     // people look at the job from other machines than the supervisor's
  bool has_host_keys = false;  // hosts prove by keys who they are
  // What to try where a host's worker does not call back, for people: "; may nodes …?"; may be empty.
  std::string no_call_back;
  std::string batch_system;              // that gave the hosts, for people: "Slurm"
  std::optional<Allocation> allocation;  // that the first hosts of the pool are from
  bool waits_in_queue = false;           // there is no allocation yet: the job is submitted first
  std::uint32_t on_request = 0;          // further hosts that can be asked for while the job runs, at a time
  OnPreempt on_preempt = OnPreempt::kStop;
};

}  // namespace monarch
