#pragma once

// Actors are programs: a mesh with `actors` is one whose program is monarch-rank, or python3 -m monarch.rank, and
// `controller` is a mesh of one rank, on the first host of the first mesh. What of their keys is not written means what
// suits actors: each rank is a gang of its own, and in a job with a controller that one alone decides about the end.
//
// Thread: pure functions.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

inline constexpr std::string_view kControllerMesh = "controller";

// monarch-rank, or `python3 -m monarch.rank`, also where a spec has it as its program.
bool is_actor_program(const std::vector<std::string>& program);

// Where plugins lie that are named by a relative path, on this machine.
std::string plugin_folder(const JobSpec& job);

// The tree with meshes of programs instead of `actors` and `controller`; nothing: it has neither. Of `job` launch,
// workspace and directory are known.
std::optional<YamlNode> with_actor_programs(const YamlNode& root, const JobSpec& job, Report& report);

}  // namespace monarch
