#pragma once

// The allocation of Slurm that a spec's hosts come from. Inside of one it is found in the environment and becomes a
// part of the job's own spec, so that the job is what it was to whoever reads that later, on another machine or after
// the allocation's end.
//
// Thread: pure functions.

#include <functional>
#include <optional>
#include <string>

#include "supervisor/core/spec/launch_spec.h"
#include "supervisor/spec/spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"
#include "transport/base/result.h"

namespace monarch {

// From SLURM_JOB_ID and SLURM_JOB_NODELIST; `variable` is getenv(3). Nothing: neither is set, this is no allocation.
// Errors name the variable.
Result<std::optional<Allocation>> allocation_from(const std::function<const char*(const char* name)>& variable);

// The spec with launch.slurm.allocation in it. Nothing: it is not for Slurm, it has one, or there is none; what cannot
// be read is reported.
std::optional<YamlNode> with_allocation(const YamlNode& root, const SpecSurroundings& around, Report& report);

// The same job as it would be outside of its allocation.
JobSpec without_allocation(JobSpec job);

}  // namespace monarch
