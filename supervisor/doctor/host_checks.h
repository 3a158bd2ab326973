#pragma once

// look_at_hosts(): every host of a pool that SSH reaches, spares and cold ones too, asked at the same time what it is
// like, whether it reaches this machine where a supervisor would listen, whether it reaches its neighbours, and whether
// what is said to be shared is. Hosts wait for each other between these questions, so as many as may have a session at
// a time (`parallel`) are asked together; the first that answered is asked again with each later lot, so that all are
// held against one. Who answers late keeps nobody waiting: it is asked again in a lot after that.
//
// Thread: the main one, before any other is started (it forks); it runs a loop until all have answered or the time is
// up.

#include <functional>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/doctor/host_seen.h"
#include "supervisor/launch/ssh/ssh_routes.h"
#include "transport/base/result.h"
#include "transport/base/time.h"

namespace monarch::doctor {

struct HostChecksOptions {
  std::string worker_path;  // of this machine
  SshUser user;
  Duration deadline = Duration::seconds(120);
  // Every limits::kNamesMissingEvery, with the names of those that have not answered.
  std::function<void(const std::vector<std::string>& missing)> on_waiting;
};

// By the pool's order. An error concerns all of them: no SSH library, no worker to copy, a configuration that cannot be
// read.
Result<std::vector<HostSeen>> look_at_hosts(const JobSpec& spec, const HostChecksOptions& options);

}  // namespace monarch::doctor
