#pragma once

// When a rank that SIGSTOP has stopped is started again, by its spec.
//
// Thread: pure functions.

#include <optional>

#include "supervisor/core/spec/job_spec.h"
#include "transport/base/time.h"

namespace monarch::drill {

// Of the mesh: after how long; nothing: it is reported and no more.
std::optional<Duration> restart_of_stopped(const MeshSpec& mesh);
// The shortest of all meshes; nothing: one of them is not started again.
std::optional<Duration> restart_of_stopped(const JobSpec& spec);

}  // namespace monarch::drill
