#pragma once

// What becomes of an allocation of Slurm's whose first node is lost: the supervisor and the batch script were there, and Slurm goes on giving
// the other nodes to nobody (with --no-kill, Slurm 22.05). A worker that has ended, because nobody was heard of, gives all of it back
// when that is what has happened, and nothing but ours was in it.
//
// Thread: pure functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace monarch {

// As `scontrol --oneliner show job N` tells it.
struct AllocationFacts {
  bool known = false;  // what was said is about that job
  bool running = false;
  bool has_script = false;  // else somebody holds it by salloc, and lets it go
  std::string first_node;   // where the script runs, or ran
  std::string nodes;        // that it has by now, as Slurm writes them
};
std::vector<std::string> allocation_query(std::uint32_t job);
AllocationFacts read_allocation(std::string_view answer, std::uint32_t job);

// Of `squeue --steps`: whether each step is one of our job's, or Slurm's own.
std::vector<std::string> allocation_steps_query(std::uint32_t job);
bool only_ours(std::string_view answer, const std::string& job_id);

// Of `scontrol show hostnames`, of the job's nodes: Slurm takes a node that it has given up out of its jobs, which has then lost what ran there. `node`: this worker's own.
std::vector<std::string> nodes_query(const AllocationFacts& facts);
bool lost_first_node(std::string_view answer, const AllocationFacts& facts, const std::string& node);

std::vector<std::string> release_command(std::uint32_t job);

enum class AllocationFate : std::uint8_t {
  kLeave,    // it is over, or not ours to end
  kWait,     // its first node may be well, or Slurm has not noticed that it is lost
  kRelease,  // if only_ours()
};
AllocationFate fate_of(const AllocationFacts& facts, const std::string& node, bool first_node_is_lost);

}  // namespace monarch
