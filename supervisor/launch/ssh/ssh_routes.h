#pragma once

// ssh_routes(): from what a spec says of its hosts, and a configuration file of OpenSSH's where it names one, to what
// is dialled.
//
// Thread: any; it reads the configuration file, and looks which keys are there.

#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/launch/ssh/ssh_access.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "transport/base/result.h"

namespace monarch {

// Of the user who launches.
struct SshUser {
  std::string name;
  std::string home;
  std::string agent_socket;  // SSH_AUTH_SOCK; empty: none
  bool accept_new_host_keys = false;

  // By its environment, and the system's list of users.
  static SshUser of_this_process();
};

// Files of private keys to try: what the spec names, or else those of the usual names that are there.
std::vector<std::string> identities_of(const LaunchSsh& launch);

// By HostId. kInvalid also where SSH reaches none of them.
Result<std::vector<SshLauncherHost>> ssh_routes(const JobSpec& spec, const SshUser& user);
// By HostId. What the spec says of a host counts before what the file says. Errors name the host, or the line of the
// file.
Result<std::vector<SshLauncherHost>> ssh_routes(const LaunchSsh& launch, const SshUser& user);

}  // namespace monarch
