#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "supervisor/launch/launcher_checks.h"
#include "supervisor/launch/ssh/ssh_routes.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

using doctor::Finding;
using doctor::Findings;
using doctor::Health;

Finding check_file(const std::string& key, const std::string& path, Health missing, const std::string& means) {
  const std::string check = "launch.ssh";
  if (::access(path.c_str(), R_OK) == 0)
    return {.check = check, .found = text(key, ": ", printable(path), " is there")};
  return {.check = check,
          .health = missing,
          .found = errno_error(text(key, ": ", printable(path)), errno).message,
          .means = means,
          .fix = text("name another file by `", key, "`")};
}

Findings check_ssh_files(const LaunchSsh& ssh) {
  const bool pinned =
      std::all_of(ssh.hosts.begin(), ssh.hosts.end(), [](const SshHost& h) { return !h.host_key.empty(); });
  Findings findings;
  const std::string identity = identities_of(ssh).front();
  findings.push_back(check_file("identity", identity, Health::kWarning, "only keys of an agent can be tried"));
  if (!pinned)
    findings.push_back(check_file("known_hosts", ssh.known_hosts, Health::kFailed, "no host can prove who it is"));
  if (ssh.config) findings.push_back(check_file("config", *ssh.config, Health::kFailed, "the job cannot start"));
  struct stat status {};
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  if (::stat(identity.c_str(), &status) == 0 && (status.st_mode & kOthers) != 0) {
    findings.push_back({.check = "launch.ssh",
                        .health = Health::kWarning,
                        .found = text("identity: ", printable(identity), " can be read by others"),
                        .means = "ssh itself refuses such a key",
                        .fix = text("chmod 600 ", printable(identity))});
  }
  return findings;
}

}  // namespace

std::vector<doctor::Check> ssh_checks(const JobSpec& spec, const doctor::Variables&) {
  return {{.name = "launch.ssh", .run = [ssh = *spec.launch.as<LaunchSsh>()] { return check_ssh_files(ssh); }}};
}

}  // namespace monarch
