#include "supervisor/doctor/machine_checks.h"

#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "supervisor/doctor/machine_limits.h"
#include "transport/base/loopback.h"
#include "transport/base/text.h"
#include "transport/process/cgroup.h"
#include "transport/process/read_small.h"

namespace monarch::doctor {

Findings check_containment() {
  const auto why = no_group_because();
  if (!why) return {{.check = "containment", .found = "cgroup v2 is writable: each rank gets a group of its own"}};
  return {{.check = "containment",
           .health = Health::kNote,
           .found = text("by marks in the environment, without cgroup v2: ", *why),
           .means =
               "what a rank starts is found by its environment, session and parents; a process that drops all three is "
               "found only when its host's worker ends",
           .fix = "start jobs in a group of their own: systemd-run --user --scope -p Delegate=yes monarch …"}};
}

Findings check_loopback() {
  const Status reached = reach_loopback();
  if (reached.ok()) return {{.check = "loopback", .found = "127.0.0.1 is reached"}};
  return {{.check = "loopback",
           .health = Health::kFailed,
           .found = reached.error().message,
           .means = "no job can be started, on whatever hosts",
           .fix = "as its root: ip link set lo up"}};
}

Findings check_tracing(const Places& places) {
  const auto scope = read_number(places.proc + "/sys/kernel/yama/ptrace_scope");
  const std::string check = "stack dumps";
  if (!scope) return {{.check = check, .found = "allowed: no Yama restricts tracing"}};
  if (*scope <= 1) return {{.check = check, .found = text("allowed: Yama ptrace_scope is ", *scope)}};
  return {{.check = check,
           .health = Health::kWarning,
           .found = text("Yama ptrace_scope is ", *scope),
           .means = "the stacks of a rank that hangs cannot be taken",
           .fix = "as root: sysctl kernel.yama.ptrace_scope=1"}};
}

Limits limits_of_this_process() {
  Limits limits;
  (void)::getrlimit(RLIMIT_NOFILE, &limits.files);  // these cannot fail for names that exist
  (void)::getrlimit(RLIMIT_MEMLOCK, &limits.locked);
  (void)::getrlimit(RLIMIT_CORE, &limits.core);
  return limits;
}

Findings check_limits(const Limits& limits, bool has_rdma) {
  Findings findings;
  Finding files{.check = "open files (ulimit -n)",
                .found = text(limit_text(limits.files.rlim_cur), ", at most ", limit_text(limits.files.rlim_max))};
  if (limits.files.rlim_max < kFewFiles) {
    files.health = Health::kWarning;
    files.means =
        "a job of many hosts or ranks runs out of descriptors; the supervisor raises its own limit to the most";
    files.fix = text("raise the hard limit to ", kFewFiles, " or more, in /etc/security/limits.conf");
  }
  findings.push_back(std::move(files));
  Finding locked{.check = "locked memory (ulimit -l)", .found = bytes_limit_text(limits.locked.rlim_cur)};
  if (has_rdma && limits.locked.rlim_cur != RLIM_INFINITY) {
    locked.health = Health::kWarning;
    locked.means = "RDMA has to lock what it sends; registering more than this fails";
    locked.fix =
        "memlock unlimited in /etc/security/limits.conf, or LimitMEMLOCK=infinity of the service that starts jobs";
  }
  findings.push_back(std::move(locked));
  Finding core{.check = "core files (ulimit -c)", .found = bytes_limit_text(limits.core.rlim_cur)};
  if (limits.core.rlim_cur == 0) {
    core.health = Health::kNote;
    core.means = "a rank that crashes leaves no core file";
    core.fix = "ulimit -c unlimited, before monarch run";
  }
  findings.push_back(std::move(core));
  return findings;
}

Findings check_shared_memory(const Places& places) {
  const std::string path = places.dev + "/shm";
  struct statvfs space {};
  Finding finding{.check = "shared memory", .found = {}};
  if (::statvfs(path.c_str(), &space) != 0) {
    finding.health = Health::kWarning;
    finding.found = errno_error(path, errno).message;
  } else {
    const std::uint64_t size = static_cast<std::uint64_t>(space.f_blocks) * space.f_frsize;
    const std::uint64_t left = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
    finding.found = text(path, ": ", size_text(left), " of ", size_text(size), " are free");
    if (size >= kSmallShm && left > size / 20) return {finding};
    finding.health = Health::kWarning;
  }
  finding.means = "NCCL, and data loaders that pass batches by it, fail with bus errors when it is full";
  finding.fix =
      "in a container --shm-size=8g (or --ipc=host); else mount -o remount,size=50% /dev/shm; look for old files in it";
  return {finding};
}

Findings check_clock(const Places& places) {
  constexpr std::array<std::string_view, 3> kSlow = {"hpet", "acpi_pm", "jiffies"};
  const auto source = read_small(places.sys + "/devices/system/clocksource/clocksource0/current_clocksource");
  if (!source) return {{.check = "clock source", .health = Health::kNote, .found = "unknown"}};
  Finding finding{.check = "clock source", .found = printable(*source)};
  if (std::find(kSlow.begin(), kSlow.end(), *source) == kSlow.end()) return {finding};
  finding.health = Health::kWarning;
  finding.means = "each look at the clock is a call into the kernel, a hundred times slower than with tsc";
  finding.fix = "dmesg says why the kernel gave tsc up";
  return {finding};
}

Findings check_processors(const Places& places) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool known = ::sched_getaffinity(0, sizeof set, &set) == 0;
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  std::size_t nodes = 0;
  for (const std::string& name : names_in(places.sys + "/devices/system/node")) {
    if (name.starts_with("node") && name.size() > 4 && name[4] >= '0' && name[4] <= '9') ++nodes;
  }
  const long usable = known ? CPU_COUNT(&set) : online;
  Finding finding{.check = "processors",
                  .found = text(usable, " of ", online, " usable, ", std::max<std::size_t>(nodes, 1), " NUMA node",
                                nodes > 1 ? "s" : "")};
  const auto quota = read_small(places.sys + "/fs/cgroup/cpu.max");
  if (quota && !quota->starts_with("max")) {
    finding.health = Health::kNote;
    finding.found += text(", quota ", printable(*quota), " us");
    finding.means = "a group limits the time of all processors together; ranks beyond it are throttled";
    finding.fix = "start no more busy ranks than quota divided by period";
  } else if (usable < online) {
    finding.health = Health::kNote;
    finding.means = "this process may use a part of the machine only, and so may its ranks";
    finding.fix = "taskset -p, or the container's settings, say which";
  }
  return {finding};
}

}  // namespace monarch::doctor
