#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "supervisor/core/spec/placement.h"
#include "supervisor/doctor/need_checks.h"
#include "supervisor/journal/runtime_dir.h"
#include "supervisor/launch/launcher_checks.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

using doctor::Finding;
using doctor::Findings;
using doctor::Health;

// Virtual hosts share all that this machine has.
Findings check_storage(const std::vector<StorageSpec>& folders) {
  Findings findings;
  for (const StorageSpec& storage : folders) {
    const UniqueFd folder(::open(storage.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const bool writable = folder.valid() && ::faccessat(folder.get(), ".", W_OK | X_OK, AT_EACCESS) == 0;
    Finding finding{.check = "storage", .found = text(printable(storage.path), " can be written to")};
    if (!writable) {
      finding.health = Health::kFailed;
      finding.found = errno_error(printable(storage.path), errno).message;
      finding.means = "what the job keeps there is missing";
      finding.fix = "make or mount it, or name another folder";
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

// Each virtual host has a loopback address of its own, on which its workers bind.
Findings check_hosts(const JobSpec& spec) {
  const std::vector<PoolHost> pool = pool_of(spec);
  Finding finding{.check = "virtual hosts",
                  .found = text(counted(pool.size(), "host"), ", ", pool.front().address, " to ", pool.back().address,
                                ", can be bound")};
  for (const PoolHost& host : pool) {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    (void)::inet_pton(AF_INET, host.address.c_str(), &address.sin_addr);  // the spec's own addresses are well written
    if (socket.valid() && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      continue;
    finding.health = Health::kFailed;
    finding.found = errno_error(text(host.name, ": binding ", host.address), errno).message;
    finding.means = "this host's worker could not be reached";
    finding.fix = "ip link set lo up; a container without a loopback device cannot run virtual hosts";
    break;
  }
  return {finding};
}

}  // namespace

std::vector<doctor::Check> local_checks(const JobSpec& spec, const doctor::Variables& environment) {
  std::vector<doctor::Check> checks;
  const std::string locks = runtime_dir_path(StateEnvironment::of_this_process());
  checks.push_back({.name = "resources", .run = [spec, environment, locks] {
                      const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
                      return doctor::check_resources(
                          spec,
                          doctor::inventory_of_this_machine(visible == environment.end()
                                                                ? std::nullopt
                                                                : std::optional<std::string>(visible->second)),
                          locks);
                    }});
  checks.push_back({.name = "ports", .run = [spec, locks] { return doctor::check_ports(spec, locks); }});
  if (!spec.storage.empty())
    checks.push_back({.name = "storage", .run = [folders = spec.storage] { return check_storage(folders); }});
  checks.push_back({.name = "virtual hosts", .run = [spec] { return check_hosts(spec); }});
  return checks;
}

}  // namespace monarch
