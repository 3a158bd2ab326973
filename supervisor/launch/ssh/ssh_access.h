#pragma once

// SshAccess: what every session to the hosts of a job needs: how each is reached, and which monarch-worker runs there.
//
// Thread: a value; what it shares does not change.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/launch/ssh/session/ssh_target.h"
#include "supervisor/launch/talk/remote_conversation.h"
#include "supervisor/launch/talk/worker_image.h"
#include "transport/base/result.h"

namespace monarch {

struct SshLauncherHost {
  std::string name;
  SshRoute route;
};

struct SshUser;

struct SshAccess {
  std::vector<SshLauncherHost> hosts;        // by HostId
  std::shared_ptr<const WorkerImage> image;  // owners: all copies, and the talks under way, which only read it
  std::string installed;                     // not empty: this worker on each host, and nothing is copied
  std::uint32_t parallel = 64;               // sessions at a time

  RemoteOrder order(RemotePurpose purpose) const {
    RemoteOrder order = order_with(purpose, image.get(), installed);
    order.worker_key = "launch.ssh.worker";
    return order;
  }
};

// Of a job whose hosts SSH reaches. Errors name the host, the line of a file that the spec names, or `worker`, which is
// copied.
Result<SshAccess> ssh_access(const JobSpec& spec, const SshUser& user, const std::string& worker);

}  // namespace monarch
