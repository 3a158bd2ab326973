#pragma once

// What a job has of GPUs, and of other generic resources (GRES), on each of its nodes, as `scontrol show job -d` tells
// it; and the words by which a step of one process on one node asks for all of that.
//
// Thread: pure functions.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "supervisor/launch/slurm/slurm_commands.h"
#include "transport/base/result.h"

namespace monarch {

// By the resource's name, "gpu", all types of it together: a job that asked for any type has no step of a certain one.
using NodeGres = std::map<std::string, std::uint32_t>;
using JobGres = std::map<std::string, NodeGres>;  // by node

Words job_detail_query(std::uint32_t job, const Words& environment);
// Of the job's own lines, "Nodes=h[1-2] CPU_IDs=0 Mem=0 GRES=gpu:a100:2(IDX:0-1),nic(CNT:1)". An answer without any is
// an error.
Result<JobGres> read_job_gres(std::string_view answer, std::uint32_t job);

// Options of srun. None where the job has no GPUs: what else it has a step gets by itself.
Words gres_options(const JobGres& job, const std::string& node);
// Of a step on all of these nodes. Nothing: they have different ones, and a step has the same on all of its nodes.
std::optional<Words> shared_gres_options(const JobGres& job, const Words& nodes);
// Of a step that is to get none, whatever its job has.
Words no_gres_options();

}  // namespace monarch
