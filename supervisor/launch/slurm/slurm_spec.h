#pragma once

// LaunchSlurm: what a spec says of nodes of Slurm.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/spec/launch_facts.h"
#include "transport/base/time.h"

namespace monarch {

// What nodes that Slurm is asked for are like, in sbatch's words. Empty: as sbatch has it, or as the nodes that the job
// has already.
struct SlurmRequest {
  std::string partition;
  std::string account;
  std::string qos;
  std::optional<Duration> time;  // whole minutes
  std::string constraint;
  std::vector<std::string> exclude;  // nodes
  std::vector<std::string> options;  // further words of sbatch's
  bool operator==(const SlurmRequest&) const = default;
};

struct LaunchSlurm {
  std::optional<std::uint32_t> nodes;  // that are asked for; nothing: need + spares
  std::uint32_t spares = 0;
  PrepareSpec prepare = {};
  std::optional<Allocation> allocation;  // the pool; nothing: there is none yet
  SlurmRequest request = {};
  std::uint32_t replacements = 4;                 // nodes beyond those of the allocation, at a time
  Duration queue_limit = Duration::seconds(900);  // for one of these
  std::uint32_t own_steps = 100;                  // where more hosts are launched at once, one step serves them
  Duration warn = Duration::seconds(120);         // before the end of its time ranks are told; zero: nobody is
  OnPreempt on_preempt = OnPreempt::kStop;
  bool operator==(const LaunchSlurm&) const = default;
};

// Which nodes they are Slurm decides; until then they are slurm1, slurm2, …, and those that are asked for while the job
// runs new1, new2, ….
inline LaunchFacts facts_of(const LaunchSlurm& slurm) {
  LaunchFacts facts;
  facts.name = "slurm";
  facts.pool = slurm.nodes;
  facts.unnamed = "slurm";
  if (slurm.allocation) {
    facts.hosts = slurm.allocation->nodes;
    facts.pool = static_cast<std::uint32_t>(slurm.allocation->nodes.size());
    facts.unnamed = "new";
    facts.on_request = slurm.replacements;
  }
  facts.spares = slurm.spares;
  facts.prepare = slurm.prepare;
  facts.one_machine = facts.proves_ends = false;
  facts.foretells = facts.is_visited = true;
  facts.batch_system = "Slurm";
  facts.no_call_back = "; may nodes call it there (control.address, control.ports)?";
  facts.allocation = slurm.allocation;
  facts.waits_in_queue = !slurm.allocation;
  facts.on_preempt = slurm.on_preempt;
  return facts;
}

}  // namespace monarch
