#include "supervisor/launch/ssh/ssh_access.h"

#include "supervisor/launch/ssh/ssh_routes.h"
#include "supervisor/launch/ssh/ssh_spec.h"

namespace monarch {

Result<SshAccess> ssh_access(const JobSpec& spec, const SshUser& user, const std::string& worker) {
  const auto* ssh = spec.launch.as<LaunchSsh>();
  if (ssh == nullptr) return Error{ErrorCode::kInvalid, "its spec does not say how to reach its hosts by SSH"};
  SshAccess access{.installed = ssh->worker.value_or(""), .parallel = ssh->parallel};
  MONARCH_ASSIGN(access.hosts, ssh_routes(*ssh, user));
  if (!ssh->worker) {
    MONARCH_ASSIGN(access.image, read_worker_image(worker));
  }
  return access;
}

}  // namespace monarch
