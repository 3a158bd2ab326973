#pragma once

// open_launcher(): the launcher that a job's spec asks for; and what a supervisor gives to it.
//
// Thread: the supervisor's loop.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/core/spec/placement.h"
#include "supervisor/journal/secure_directory.h"
#include "supervisor/launch/guard.h"
#include "supervisor/launch/launcher.h"
#include "supervisor/launch/launchers.h"
#include "transport/base/result.h"
#include "transport/loop/event_loop.h"

namespace monarch {

// All that is referred to outlives the launcher.
struct LaunchSurroundings {
  EventLoop& loop;
  Guard& guard;
  const JobSpec& spec;
  const std::vector<PoolHost>& hosts;  // by HostId, as they are called now
  const SecureDirectory& directory;    // the job's
  const SecureDirectory& runtime;      // of sockets
  JobUuid job;
  std::string job_id;
  Term term;
  std::string worker_path;  // of monarch-worker
  std::string log_directory;
  std::uint16_t control_port = 0;
  std::uint16_t bulk_port = 0;
  std::uint64_t seed = 0;             // of waits
  bool accept_new_host_keys = false;  // and keep them
  bool returned = false;              // an earlier supervisor of the job may have launched workers
};

// kInvalid: the spec's author can mend it. The handlers are called by the loop.
Result<std::unique_ptr<Launcher>> open_launcher(const LaunchSurroundings& around, LauncherHandlers handlers);

// One for each launcher.
#define MONARCH_DECLARE_OPEN(name) \
  Result<std::unique_ptr<Launcher>> open_##name(const LaunchSurroundings& around, LauncherHandlers handlers);
MONARCH_LAUNCHERS(MONARCH_DECLARE_OPEN)
#undef MONARCH_DECLARE_OPEN

}  // namespace monarch
