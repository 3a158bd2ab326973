#include "supervisor/doctor/spec_checks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "supervisor/core/placement.h"
#include "supervisor/doctor/need_checks.h"
#include "supervisor/journal/runtime_dir.h"
#include "supervisor/launch/ssh/ssh_routes.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch::doctor {

namespace {

// As execvp(3) without PATH.
constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

std::string variable(const MeshSpec& mesh, const Variables& environment, const std::string& name) {
  if (const auto own = mesh.env.find(name); own != mesh.env.end()) return own->second;
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

// `wrap` starts the program, where there is one.
Finding check_program(const MeshSpec& mesh, const std::string& check, const std::string& program,
                      const std::string& workdir, const Variables& environment) {
  if (expands(program))
    return {.check = check, .health = Health::kNote, .found = printable(program) + " is known only later"};
  std::string path = variable(mesh, environment, "PATH");
  const auto file = find_program(program, workdir, path.empty() ? std::string(kDefaultPath) : path);
  if (file.ok()) return {.check = check, .found = text(printable(program), " is ", printable(*file))};
  return {.check = check,
          .health = Health::kFailed,
          .found = file.error().message,
          .means = text("the ranks of ", mesh.name, " would end with exit code ",
                        file.error().code == ErrorCode::kNotFound ? 127 : 126),
          .fix = "install it, make it executable, or name it by its path"};
}

// What lies on other machines is looked at there: host_requests.h.
Findings check_mesh(const MeshSpec& mesh, const JobSpec& spec, const Variables& environment) {
  const std::string check = text("mesh ", mesh.name);
  const std::string base = base_directory(spec);
  const bool is_below = mesh.workdir && !mesh.workdir->starts_with('/');
  const std::string workdir = is_below ? text(base, '/', *mesh.workdir) : mesh.workdir.value_or(base);
  const bool here = std::holds_alternative<LaunchLocal>(spec.launch);
  struct stat status {};
  Findings findings;
  if (here && !expands(workdir) &&
      (::stat(workdir.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || ::access(workdir.c_str(), X_OK) != 0)) {
    findings.push_back({.check = check,
                        .health = Health::kFailed,
                        .found = text("workdir ", printable(workdir), " is no folder that can be entered"),
                        .means = text("the ranks of ", mesh.name, " cannot start in it"),
                        .fix = "make it, or change `workdir`"});
  }
  if (here && !mesh.wrap.empty())
    findings.push_back(check_program(mesh, check, mesh.wrap.front(), workdir, environment));
  if (here && mesh.wrap.empty() && !mesh.program.empty()) {
    findings.push_back(check_program(mesh, check, mesh.program.front(), workdir, environment));
  }
  for (const std::string& name : mesh.env_pass) {
    if (name.find('*') != std::string::npos || environment.contains(name)) continue;
    findings.push_back({.check = check,
                        .health = Health::kWarning,
                        .found = text("env_pass: ", printable(name), " is not set in this shell"),
                        .means = "the ranks will not have it",
                        .fix = text("export ", printable(name), "=…")});
  }
  return findings;
}

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

// By what monarch speaks to Slurm, and to which of its jobs. The nodes themselves are not asked.
Findings check_slurm(const LaunchSlurm& slurm, const Variables& environment) {
  const std::string check = "launch.slurm";
  const auto path = environment.find("PATH");
  Findings findings;
  for (const char* program : {"sbatch", "srun", "squeue", "scancel", "sinfo", "scontrol"}) {
    const auto found = find_program(program, "/", path == environment.end() ? "/usr/bin:/bin" : path->second);
    if (found.ok()) continue;
    findings.push_back({.check = check,
                        .health = Health::kFailed,
                        .found = found.error().message,
                        .means = "no node is asked for, no worker gets onto one, or none is ended",
                        .fix = "install Slurm's commands (Debian: slurm-client), or add their folder to PATH"});
  }
  if (findings.empty())
    findings.push_back({.check = check, .found = "sbatch, srun, squeue, scancel, sinfo and scontrol are in PATH"});
  if (slurm.allocation) {
    findings.push_back(
        {.check = check,
         .found = text("job ", slurm.allocation->job, " has ", counted(slurm.allocation->nodes.size(), "node"))});
  } else {
    findings.push_back({.check = check, .found = "this shell is in no allocation: sbatch is asked for one"});
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

bool expands(std::string_view word) { return word.find("$(") != std::string_view::npos; }

Result<std::string> find_program(const std::string& program, const std::string& workdir,
                                 const std::string& search_path) {
  std::vector<std::string> candidates;
  if (program.find('/') != std::string::npos) {
    candidates.push_back(program.front() == '/' ? program : text(workdir, "/", program));
  } else {
    std::string_view rest = search_path;
    for (bool more = true; more;) {
      const std::size_t colon = rest.find(':');
      const std::string_view folder = rest.substr(0, colon);
      candidates.push_back(folder.starts_with('/') ? text(folder, "/", program)
                                                   : text(workdir, "/", folder, folder.empty() ? "" : "/", program));
      more = colon != std::string_view::npos;
      rest.remove_prefix(more ? colon + 1 : rest.size());
    }
  }
  std::optional<Error> why;
  for (const std::string& file : candidates) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) continue;
    if (S_ISREG(status.st_mode) && ::access(file.c_str(), X_OK) == 0) return file;
    if (!why) why = Error{ErrorCode::kInvalid, text(printable(file), " cannot be executed")};
  }
  if (why) return *why;
  return Error{ErrorCode::kNotFound, program.find('/') != std::string::npos
                                         ? text(printable(candidates.front()), " is not there")
                                         : text("no ", printable(program), " in PATH")};
}

std::vector<Check> spec_checks(const JobSpec& spec, const Variables& environment) {
  std::vector<Check> checks;
  for (const MeshSpec& mesh : spec.meshes) {
    checks.push_back({.name = text("mesh ", mesh.name),
                      .run = [mesh, spec, environment] { return check_mesh(mesh, spec, environment); }});
  }
  if (const auto* ssh = std::get_if<LaunchSsh>(&spec.launch)) {
    checks.push_back({.name = "launch.ssh", .run = [ssh = *ssh] { return check_ssh_files(ssh); }});
    return checks;  // what follows looks at this machine
  }
  if (const auto* slurm = std::get_if<LaunchSlurm>(&spec.launch)) {
    checks.push_back(
        {.name = "launch.slurm", .run = [slurm = *slurm, environment] { return check_slurm(slurm, environment); }});
    return checks;
  }
  const std::string locks = runtime_dir_path(StateEnvironment::of_this_process());
  checks.push_back({.name = "resources", .run = [spec, environment, locks] {
                      const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
                      return check_resources(
                          spec,
                          inventory_of_this_machine(visible == environment.end()
                                                        ? std::nullopt
                                                        : std::optional<std::string>(visible->second)),
                          locks);
                    }});
  checks.push_back({.name = "ports", .run = [spec, locks] { return check_ports(spec, locks); }});
  if (!spec.storage.empty())
    checks.push_back({.name = "storage", .run = [folders = spec.storage] { return check_storage(folders); }});
  checks.push_back({.name = "virtual hosts", .run = [spec] { return check_hosts(spec); }});
  return checks;
}

}  // namespace monarch::doctor
