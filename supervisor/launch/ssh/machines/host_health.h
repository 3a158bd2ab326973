#pragma once

// host_health(): what a launcher asks of a host that was lost before it starts a worker there again: what `monarch
// doctor` would ask of it by itself, and what that would call a failure is one here. A host that came back without its
// disk, its storage or its GPUs must not be the spare that the next gang goes to.
//
// Thread: any; what it returns is called in the session's thread.

#include <memory>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/launch/ssh/ssh_launcher.h"

namespace monarch {

SshHostCheck host_health(const JobSpec& spec, const SshAccess& access);

}  // namespace monarch
