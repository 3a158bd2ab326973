#include "worker/errand/host_facts.h"

#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "transport/base/launcher_variables.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/process/cgroup.h"
#include "transport/process/cpu_affinity.h"
#include "transport/process/door.h"
#include "transport/process/interface_addresses.h"
#include "transport/process/job_marks.h"
#include "transport/process/nvidia_gpus.h"
#include "transport/process/read_small.h"
#include "transport/process/spawn.h"
#include "transport/wire/runtime_directory.h"
#include "transport/wire/socket_directory.h"
#include "worker/core/host_places.h"
#include "worker/core/login_address.h"
#include "worker/errand/folder_facts.h"

namespace monarch {

namespace {

constexpr std::size_t kMostPids = 16;     // of one job, in an answer
constexpr std::size_t kMostOrphans = 64;  // jobs

std::string value_in(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

LimitFacts limit_of(__rlimit_resource resource) {
  rlimit limit{};
  (void)::getrlimit(resource, &limit);  // cannot fail for a name that exists
  const auto number = [](rlim_t value) { return value == RLIM_INFINITY ? kUnlimited : std::uint64_t{value}; };
  return {.soft = number(limit.rlim_cur), .hard = number(limit.rlim_max)};
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::vector<FolderFacts> places_of(const Environment& environment, Duration patience) {
  std::vector<FolderNeed> needs;
  std::string own(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", own.data(), own.size());
  own.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  if (!own.empty()) needs.push_back({.name = "worker", .path = parent_of(own)});
  const auto state = host_places(environment, "job", "host");
  if (state.ok()) {
    needs.push_back({.name = "state and logs", .path = parent_of(parent_of(state->state_directory)), .written = true});
  }
  needs.push_back({.name = "shared memory", .path = "/dev/shm", .written = true});
  needs.push_back({.name = "temporary files", .path = "/tmp", .written = true});
  std::vector<FolderFacts> facts;
  for (const FolderNeed& need : needs) facts.push_back(look_at_place(need, patience));
  return facts;
}

std::uint32_t mtu_of(const std::string& interface) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  const std::size_t length = std::min(interface.size(), sizeof request.ifr_name - 1);
  std::memcpy(request.ifr_name, interface.data(), length);
  const bool known = socket.valid() && ::ioctl(socket.get(), SIOCGIFMTU, &request) == 0 && request.ifr_mtu > 0;
  return known ? static_cast<std::uint32_t>(request.ifr_mtu) : 0;
}

// Those that are up, and have an address.
std::vector<InterfaceFacts> interfaces() {
  std::vector<InterfaceFacts> found;
  for (const InterfaceAddress& each : interface_addresses()) {
    found.push_back({.name = each.interface, .address = each.address, .mtu = mtu_of(each.interface)});
  }
  return found;
}

// A job whose keeper lives is none of a doctor's business: it has its lease.
std::vector<OrphanFacts> orphans(const std::map<std::string, std::vector<ProcessEntry>>& marked) {
  std::vector<OrphanFacts> found;
  for (const auto& [uuid, processes] : marked) {
    const bool kept = std::any_of(processes.begin(), processes.end(), [](const ProcessEntry& process) {
      const auto worker = worker_mark(process.pid);
      return worker && worker->keeper;
    });
    if (kept || found.size() == kMostOrphans) continue;
    OrphanFacts orphan{.job_uuid = uuid};
    for (const ProcessEntry& process : processes) {
      if (orphan.pids.size() == kMostPids) break;
      orphan.pids.push_back(process.pid);
      if (orphan.host.empty()) orphan.host = environment_value(process.pid, kHostVariable).value_or("");
      if (orphan.program.empty()) orphan.program = join(arguments_of(process.pid), " ").substr(0, 200);
    }
    found.push_back(std::move(orphan));
  }
  return found;
}

// Folders of sockets whose job has no process here.
std::vector<std::string> stale_sockets(const std::map<std::string, std::vector<ProcessEntry>>& marked) {
  std::vector<std::string> found;
  for (const std::string& folder : lasting_directories({.uid = ::geteuid()})) {
    for (const std::string& name : names_in(folder)) {
      if (!name.starts_with("w-")) continue;
      const bool used = std::any_of(marked.begin(), marked.end(), [&name](const auto& job) {
        return name.starts_with(socket_directory_prefix(job.first));
      });
      if (!used) found.push_back(text(folder, "/", name));
    }
  }
  return found;
}

void look_at_gpus(const CheckRequest& request, const Environment& environment, const HostFactsRoots& roots,
                  HostFacts& facts) {
  if (request.wake_gpus) wake_nvidia_gpus();
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  facts.inventory.gpus = visible_gpus(
      read_nvidia_gpus(), visible == environment.end() ? std::nullopt : std::optional<std::string>(visible->second));
  facts.gpu_driver = read_small(roots.proc + "/driver/nvidia/version").has_value();
  if (facts.inventory.gpus.empty()) return;
  const UniqueFd device(::open("/dev/nvidiactl", O_RDWR | O_CLOEXEC));
  facts.gpus_can_be_opened = device.valid();
}

// What systemd makes of the last line of each name, in its order of reading (logind.conf(5)).
struct LogindRules {
  bool kill = false;
  std::string excluded = "root";
  std::string only;
};

std::string_view trimmed(std::string_view word) {
  const std::size_t begin = word.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return word.substr(begin, word.find_last_not_of(" \t\r") + 1 - begin);
}

void read_rules(std::string_view rest, LogindRules& rules) {
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = trimmed(line.substr(0, equals));
    const std::string_view value = trimmed(line.substr(equals + 1));
    if (name == "KillUserProcesses") {
      rules.kill = value == "yes" || value == "y" || value == "true" || value == "t" || value == "1" || value == "on";
    }
    if (name == "KillExcludeUsers") rules.excluded = value;
    if (name == "KillOnlyUsers") rules.only = value;
  }
}

LogindRules logind_rules(const HostFactsRoots& roots) {
  std::vector<std::string> files = {roots.etc + "/systemd/logind.conf"};
  for (const std::string& name : names_in(roots.etc + "/systemd/logind.conf.d")) {
    if (name.ends_with(".conf")) files.push_back(text(roots.etc, "/systemd/logind.conf.d/", name));
  }
  LogindRules rules;
  for (const std::string& file : files) read_rules(read_small(file).value_or(""), rules);
  return rules;
}

bool lists(const std::string& users, const std::string& user) {
  return text(" ", users, " ").find(text(" ", user, " ")) != std::string::npos;
}

}  // namespace

bool kills_at_logout(const std::string& user, const HostFactsRoots& roots) {
  const LogindRules rules = logind_rules(roots);
  if (lists(rules.excluded, user)) return false;
  if (rules.only.empty() ? !rules.kill : !lists(rules.only, user)) return false;
  const auto group = read_small(roots.proc + "/self/cgroup");
  return group && group->find("/session-") != std::string::npos;
}

std::vector<RdmaPortFacts> rdma_ports(const HostFactsRoots& roots) {
  const std::string folder = roots.sys + "/class/infiniband";
  std::vector<RdmaPortFacts> found;
  for (const std::string& device : names_in(folder)) {
    for (const std::string& port : names_in(text(folder, "/", device, "/ports"))) {
      const std::string files = text(folder, "/", device, "/ports/", port);
      const std::string state = read_small(files + "/state").value_or("");  // "4: ACTIVE"
      found.push_back({.name = text(device, ":", port),
                       .state = state.substr(std::min(state.size(), state.find(' ') + 1)),
                       .link_layer = read_small(files + "/link_layer").value_or(""),
                       .rate = read_small(files + "/rate").value_or("")});
    }
  }
  return found;
}

ProgramFacts find_program(const ProgramNeed& need, const Environment& environment) {
  ProgramFacts facts{.mesh = need.mesh, .program = need.program};
  std::string program = need.program;
  if (program.find('/') != std::string::npos && program.front() != '/') program = text(need.workdir, "/", program);
  const std::string path = need.path.empty() ? value_in(environment, "PATH") : need.path;
  int seen = ENOENT;
  for (const std::string& file : program_candidates(program, {text("PATH=", path)})) {
    if (::faccessat(AT_FDCWD, file.c_str(), X_OK, AT_EACCESS) == 0) {
      facts.found = file;
      return facts;
    }
    if (errno != ENOENT && errno != ENOTDIR) seen = errno;
  }
  facts.error = program.find('/') != std::string::npos ? errno_error(program, seen).message
                : seen == ENOENT                       ? text("not in PATH (", path, ")")
                                                       : errno_error(text("in PATH (", path, ")"), seen).message;
  return facts;
}

HostFacts host_facts(const CheckRequest& request, const Environment& environment, const HostFactsRoots& roots) {
  HostFacts facts;
  utsname kernel{};
  (void)::uname(&kernel);  // fails for a bad address alone
  facts.version = MONARCH_VERSION;
  facts.kernel = kernel.release;
  facts.machine = kernel.machine;
  facts.user = value_in(environment, "USER");
  facts.files = limit_of(RLIMIT_NOFILE);
  facts.locked = limit_of(RLIMIT_MEMLOCK);
  facts.processes = limit_of(RLIMIT_NPROC);
  facts.no_cgroup_because = no_group_because().value_or("");
  facts.ptrace_scope = read_number(roots.proc + "/sys/kernel/yama/ptrace_scope");
  facts.places = places_of(environment, request.patience);
  facts.inventory.cpus = static_cast<std::uint32_t>(usable_cpus().size());
  look_at_gpus(request, environment, roots, facts);
  facts.rdma = rdma_ports(roots);
  facts.interfaces = interfaces();
  const auto marked = marked_processes();
  facts.orphans = orphans(marked);
  facts.stale_sockets = stale_sockets(marked);
  facts.kills_at_logout = kills_at_logout(facts.user, roots);
  facts.address = request.calls.empty() ? login_address(value_in(environment, "SSH_CONNECTION"))
                                        : address_towards(request.calls.front());
  return facts;
}

}  // namespace monarch
