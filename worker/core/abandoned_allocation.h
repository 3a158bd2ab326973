#pragma once

// What becomes of an allocation of Slurm's whose first node is lost: the supervisor and the batch script were there,
// and Slurm goes on giving the other nodes to nobody (with --no-kill, Slurm 22.05). The last worker that has ended
// because nobody was heard of gives all of it back when that is what has happened, and nothing but ours was in it.
//
// Thread: pure functions.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace monarch {

// As `scontrol --oneliner show job N` tells it.
struct AllocationFacts {
  bool known = false;  // what was said is about that job
  bool running = false;
  bool has_script = false;  // else somebody holds it by salloc, and lets it go
  // Its comment begins with our name: we gave it to Slurm, or its script says that it runs nothing else.
  bool is_ours = false;
  bool is_array = false;   // then one number may mean more than one job
  std::string first_node;  // where the script runs, or ran
  std::string nodes;       // that it has by now, as Slurm writes them
};
std::vector<std::string> allocation_query(std::uint32_t job);
AllocationFacts read_allocation(std::string_view answer, std::uint32_t job);

// Of `scontrol show hostnames`, of the job's nodes: Slurm takes a node that it has given up out of its jobs, which has
// then lost what ran there.
std::vector<std::string> nodes_query(const AllocationFacts& facts);
std::set<std::string> read_nodes(std::string_view answer);

struct AllocationStep {
  std::uint32_t number = 0;  // of the job's
  std::string name;          // "hello-3fa2.h1"
  std::string nodes;         // one of ours has one, or many of them
};
std::vector<std::string> allocation_steps_query(std::uint32_t job);
// Those that somebody started by srun, without Slurm's own.
std::vector<AllocationStep> read_allocation_steps(std::string_view answer);

std::vector<std::string> release_command(std::uint32_t job);

// A look at nodes of a step that has many, which Slurm lists as long as it runs on one of them: who has a worker of the
// job says so, and the others say nothing.
struct OthersLook {
  std::uint32_t job = 0;
  std::string job_id;
  std::string job_uuid;
  std::set<std::string> nodes;
  std::string slurm_conf;  // may be empty
};
std::vector<std::string> others_query(const OthersLook& look);

enum class AllocationFate : std::uint8_t {
  kLeave,       // it is over, not ours to end, or another worker's
  kWait,        // its first node may be well, or another worker is not done
  kLookBefore,  // another worker's, if there is one on a node before this one
  kLook,        // nobody else is there, if none of the others of its own step is
  kRelease,     // nobody else is there
};
// Whether there is anything to ask on for.
AllocationFate fate_of(const AllocationFacts& facts, const std::string& node);
// What a worker is, and what it was told.
struct AllocationView {
  std::string job_id;
  std::string node;        // its own
  std::uint32_t step = 0;  // its own
  std::set<std::string> nodes;
  std::vector<AllocationStep> steps;
  std::set<std::string> step_nodes;  // of its own step
  bool none_before = false;          // none of before_of() has a worker
};
// Of the workers that are left the one with the first step, and within a step the one on its first node, waits for the
// others: who has a supervisor stays, and then nothing is released. Whether a node of a step that many share still has
// a worker Slurm does not say: the next few look whether there is one before them, and the others leave it to these.
AllocationFate fate_of(const AllocationFacts& facts, const AllocationView& view);
// The others of its own step that the job still has, and those of them that come before it, without the job's first
// one.
std::set<std::string> others_of(const AllocationView& view);
std::set<std::string> before_of(const AllocationFacts& facts, const AllocationView& view);

}  // namespace monarch
