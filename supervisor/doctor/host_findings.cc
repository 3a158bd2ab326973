#include "supervisor/doctor/host_findings.h"

#include <algorithm>

#include "supervisor/core/spec/placement.h"
#include "supervisor/core/spec/resources.h"
#include "supervisor/doctor/machine_limits.h"
#include "supervisor/doctor/odd_hosts.h"
#include "transport/base/text.h"
#include "transport/process/read_small.h"

namespace monarch::doctor {

namespace {

// Files of one job on several hosts (logs, checkpoints, what `make` compares), and certificates, are in a wrong order
// beyond this; NTP keeps hosts a thousand times closer. Leases and deadlines do not depend on it.
constexpr Duration kClockLimit = Duration::seconds(2);
constexpr std::uint64_t kFewSoftFiles = 1024;
constexpr std::uint64_t kFewProcesses = 4096;
constexpr std::uint64_t kFewInodes = 1000;
constexpr std::size_t kMostWords = 400;  // of a host's own

std::string check_of(LaunchFailureKind kind) {
  if (is_host_key(kind)) return "host key";
  switch (kind) {
    case LaunchFailureKind::kName:
    case LaunchFailureKind::kRefused:
    case LaunchFailureKind::kUnreachable:
    case LaunchFailureKind::kTimeout:
    case LaunchFailureKind::kClosed: return "reach";
    case LaunchFailureKind::kAuthentication: return "login";
    case LaunchFailureKind::kForwarding: return "call-back";
    case LaunchFailureKind::kHostKeyChanged:
    case LaunchFailureKind::kHostKeyUnknown:
    case LaunchFailureKind::kHostKeyRevoked:
    case LaunchFailureKind::kOther:
    case LaunchFailureKind::kShellNoise:
    case LaunchFailureKind::kNotWritable:
    case LaunchFailureKind::kResources:
    case LaunchFailureKind::kLibraries:
    case LaunchFailureKind::kLauncherGone:
    case LaunchFailureKind::kInterface:
    case LaunchFailureKind::kUnwell:
    case LaunchFailureKind::kNotGranted:
    case LaunchFailureKind::kDiskFull:
    case LaunchFailureKind::kNotExecutable:
    case LaunchFailureKind::kArchitecture:
    case LaunchFailureKind::kExec:
    case LaunchFailureKind::kCallBack:
    case LaunchFailureKind::kVersion: break;
  }
  return "worker";
}

// Collects the findings of one host.
class Judge {
 public:
  explicit Judge(const HostSeen& host) : host_(host) {}

  Findings judge() {
    if (host_.silent) {
      add("reach", Health::kFailed, text("no answer when the time was up", host_.late),
          "nothing of the rest is known of it",
          "--timeout gives it longer; " + there("true") + " shows whether it answers at all");
    }
    if (host_.failure) failure(*host_.failure);
    if (host_.clock) clock(*host_.clock);
    if (host_.facts) facts(*host_.facts);
    doors();
    for (const FolderFacts& folder : host_.folders) needed_folder(folder);
    for (const ProgramFacts& program : host_.programs) needed_program(program);
    tokens();
    return std::move(findings_);
  }

 private:
  void add(std::string check, Health health, std::string found, std::string means, std::string fix) {
    findings_.push_back({.check = std::move(check),
                         .health = health,
                         .found = std::move(found),
                         .means = std::move(means),
                         .fix = std::move(fix)});
  }
  std::string there(const std::string& command) const { return reproducer(host_.route, command); }

  void failure(const LaunchFailure& failure) {
    std::string found = text(name_of(failure.kind), ": ", failure.message);
    if (!failure.words.empty()) found += text("; it said: ", printable(failure.words.substr(0, kMostWords)));
    const bool key = is_host_key(failure.kind);
    add(check_of(failure.kind), Health::kFailed, std::move(found), "no worker can be started there",
        key ? "ask whoever runs the host for its fingerprint; then mend known_hosts, or pin it by `host_key`"
            : (failure.again.empty() ? there("true") : failure.again) + " shows it again");
  }

  void clock(const ClockSample& sample) {
    const Duration offset = sample.offset < Duration() ? Duration() - sample.offset : sample.offset;
    if (offset - sample.bound <= kClockLimit) return;
    add("clock", Health::kWarning,
        text("its clock is ", to_text(offset), sample.offset < Duration() ? " behind" : " ahead of",
             " this machine's (", "to within ", to_text(sample.bound), ")"),
        text("times in its logs and files do not fit those of other hosts, and certificates may not be valid; more "
             "than ",
             to_text(kClockLimit), " is no drift"),
        there("timedatectl") + "; chronyc tracking there says whether it has a time server");
  }

  void limits(const HostFacts& facts) {
    if (facts.files.hard < kFewFiles || facts.files.soft < kFewSoftFiles) {
      add("limits", Health::kWarning,
          text("open files (ulimit -n): ", limit_text(facts.files.soft), ", at most ", limit_text(facts.files.hard)),
          text("ranks with many connections or files fail with \"Too many open files\"; ", kFewSoftFiles, " and ",
               kFewFiles, " would be enough"),
          "nofile in /etc/security/limits.conf there, and LimitNOFILE of ssh.service");
    }
    if (!facts.rdma.empty() && facts.locked.soft != kUnlimited) {
      add("limits", Health::kWarning, text("locked memory (ulimit -l): ", size_text(facts.locked.soft)),
          "RDMA has to lock what it sends; registering more than this fails",
          "memlock unlimited in /etc/security/limits.conf there, and LimitMEMLOCK=infinity of ssh.service");
    }
    if (facts.processes.soft < kFewProcesses) {
      add("limits", Health::kWarning, text("processes and threads (ulimit -u): ", limit_text(facts.processes.soft)),
          "ranks that start many threads fail with \"Resource temporarily unavailable\"",
          "nproc in /etc/security/limits.conf there");
    }
  }

  void place(const FolderFacts& place) {
    const std::string check = place.name == "shared memory" ? place.name : "disk";
    const std::string what = text(place.name, ": ", printable(place.path));
    const bool kept = place.name == "state and logs";
    if (!place.error.empty()) {
      return add(
          check, kept || place.name == "worker" ? Health::kFailed : Health::kWarning, text(what, ": ", place.error),
          kept ? "a worker cannot be started, or cannot write the output of its ranks" : "programs that need it fail",
          there(text("df -h ", shell_word(place.path), "; df -i ", shell_word(place.path))));
    }
    if (place.name == "worker") return;  // it has its room already
    const std::string room =
        text(what, ": ", size_text(place.free_bytes), " of ", size_text(place.total_bytes), " free");
    if (place.name == "shared memory" && place.total_bytes < kSmallShm) {
      return add(check, Health::kWarning, room,
                 "NCCL, and data loaders that pass batches by it, fail with bus errors when it is full",
                 "mount -o remount,size=50% /dev/shm there; a container gets more by --shm-size or --ipc=host");
    }
    if (place.free_bytes < kLittleSpace) {
      return add(check, kept && place.free_bytes < kNoSpace ? Health::kFailed : Health::kWarning, room,
                 kept ? "the output of ranks is written here; a rank is held up when its host's disk is full"
                      : "programs that write there fail when it is full",
                 there(text("df -h ", shell_word(place.path))) +
                     "; XDG_STATE_HOME of that login names another place for state and logs");
    }
    if (place.free_files < kFewInodes) {
      add(check, Health::kWarning, text(what, ": ", place.free_files, " more files can be made"),
          "a file system without inodes is full, whatever room it has", there(text("df -i ", shell_word(place.path))));
    }
  }

  void devices(const HostFacts& facts) {
    if (facts.gpu_driver && facts.inventory.gpus.empty()) {
      add("GPUs", Health::kWarning, "none that can be used, though the nvidia driver is loaded",
          "the driver lost its devices, or CUDA_VISIBLE_DEVICES of that login leaves none",
          there("nvidia-smi; echo $CUDA_VISIBLE_DEVICES"));
    }
    if (!facts.gpus_can_be_opened) {
      add("GPUs", Health::kFailed, "/dev/nvidiactl cannot be opened", "no process of this user can use a GPU",
          "nvidia-modprobe -u -c=0 there makes the device files; their group and mode say who may use them");
    }
    for (const RdmaPortFacts& port : facts.rdma) {
      if (port.state == "ACTIVE") continue;
      add("RDMA", Health::kWarning, text("port ", printable(port.name), " is ", printable(port.state)),
          "nothing can be sent through this port: a cable, a switch, or a subnet manager is missing",
          there("ibstat; rdma link"));
    }
  }

  void earlier_jobs(const HostFacts& facts) {
    for (const OrphanFacts& orphan : facts.orphans) {
      std::vector<std::string> pids;
      for (const std::int32_t pid : orphan.pids) pids.push_back(text(pid));
      add("earlier jobs", Health::kWarning,
          text(counted(pids.size(), "process", "processes"), " of job ", orphan.job_uuid,
               ", which has no worker there any more: ", join(pids, ", "), " (", printable(orphan.program), ")"),
          "they hold memory, GPUs and ports, and may still write to what the next job uses",
          there(text("kill -KILL ", join(pids, " "))));
    }
    if (!facts.stale_sockets.empty()) {
      add("earlier jobs", Health::kNote,
          text(counted(facts.stale_sockets.size(), "folder"), " of sockets whose job does not run there, such as ",
               printable(facts.stale_sockets.front())),
          "its worker was killed; they are in nobody's way",
          there(text("rm -r ", shell_word(facts.stale_sockets.front()))));
    }
  }

  void facts(const HostFacts& facts) {
    if (facts.version != MONARCH_VERSION) {
      add("worker", Health::kFailed,
          text("the worker there is of version ", printable(facts.version), ", this is " MONARCH_VERSION),
          "it does not understand this supervisor", "install the same version there, or leave launch.ssh.worker out");
    }
    limits(facts);
    for (const FolderFacts& each : facts.places) place(each);
    devices(facts);
    earlier_jobs(facts);
    if (facts.ptrace_scope.value_or(0) > 1) {
      add("stack dumps", Health::kWarning, text("Yama ptrace_scope is ", *facts.ptrace_scope),
          "the stacks of a rank that hangs cannot be taken", "as root, there: sysctl kernel.yama.ptrace_scope=1");
    }
    if (facts.kills_at_logout) {
      add("logout", Health::kFailed, "logind ends what a session leaves (KillUserProcesses), and no session is exempt",
          "the worker and its ranks would be killed when the session that started them closes",
          text("as root, there: KillExcludeUsers=root ", facts.user.empty() ? "USER" : printable(facts.user),
               " in /etc/systemd/logind.conf, then systemctl restart systemd-logind; lingering keeps services of the "
               "user alone"));
    }
  }

  void doors() {
    if (!host_.no_call_back_because.empty()) {
      add("call-back", Health::kFailed, host_.no_call_back_because, "its worker would not know whom to call",
          "control: {address: …}, an address of this machine as the hosts see it, or control: {via: ssh}");
    }
    for (const DoorReached& each : host_.call_back) {
      if (each.error.empty()) continue;
      add("call-back", Health::kFailed,
          text("blocked: it does not reach this machine at ", each.call.address, " port ", each.call.port, ": ",
               each.error),
          "its worker could be started, and never report",
          "let TCP from it through a firewall here and there (control: {ports: …} makes them known beforehand), or "
          "name "
          "an address that it reaches by control: {address: …}, or take the way of the session by control: {via: ssh}");
    }
    if (!host_.no_door_because.empty()) {
      add("neighbours", Health::kFailed, text("no port can be opened: ", host_.no_door_because),
          "ranks there cannot listen either", "network: {ports: …}, and ss -ltn there");
    }
    for (const DoorReached& each : host_.neighbours) {
      if (each.error.empty()) continue;
      add("neighbours", Health::kFailed,
          text("blocked: it does not reach ", each.call.name, " at ", each.call.address, " port ", each.call.port, ": ",
               each.error),
          "ranks of one gang on both hosts do not find each other (MASTER_ADDR), and wait until they give up",
          text("let TCP from ", host_.name, " to ", each.call.name,
               " through; network: {ports: …} bounds which ports"));
    }
  }

  void needed_folder(const FolderFacts& folder) {
    if (folder.error.empty()) return;
    const bool storage = folder.name == "storage";
    add(storage ? "storage" : folder.name, Health::kFailed,
        text(printable(folder.path), folder.there ? ": " : " is not there: ", folder.error),
        storage ? "what the job keeps there is missing on this host" : "ranks cannot start in it",
        folder.there ? there(text("ls -ld ", shell_word(folder.path), "; mount | grep ", shell_word(folder.path)))
                     : text("make or mount it there, or name another folder",
                            storage ? "" : ", or let `workspace` give each host a copy of one that is here", "; ",
                            there(text("ls -ld ", folder.path))));
  }

  void needed_program(const ProgramFacts& program) {
    if (program.error.empty()) return;
    add(text("mesh ", program.mesh), Health::kFailed, text("program ", printable(program.program), ": ", program.error),
        text("the ranks of ", program.mesh, " would end with exit code 127 or 126 there"),
        "install it there, or name it by a path that is there");
  }

  void tokens() {
    for (const TokenFound& written : host_.written) {
      if (written.error.empty()) continue;
      add("storage", Health::kFailed, text(printable(written.folder), ": ", written.error),
          "it cannot be written to from this host", there(text("touch ", shell_word(written.folder + "/.x"))));
    }
    for (const TokenSeen& token : host_.tokens) {
      if (token.found.error.empty() && token.found.content == token.expected) continue;
      add("storage", Health::kFailed,
          text(printable(token.found.folder), " is not shared: what ", token.writer, " wrote there is not seen",
               token.found.error.empty() ? "" : text(" (", token.found.error, ")")),
          "a checkpoint that another host wrote is not found here after a restart",
          there(text("mount | grep ", shell_word(token.found.folder))) + text("; and the same on ", token.writer));
    }
  }

  const HostSeen& host_;
  Findings findings_;
};

}  // namespace

ClockSample clock_sample(WallTime left, WallTime received, WallTime answered, WallTime came) {
  const auto between = [](WallTime from, WallTime to) {
    return Duration::nanoseconds(to.nanoseconds_since_epoch - from.nanoseconds_since_epoch);
  };
  const Duration way = between(left, came) - between(received, answered);
  return {.offset = (between(left, received) + between(came, answered)) / 2,
          .bound = std::max(way, Duration::zero()) / 2};
}

Findings findings_of(const HostSeen& host) { return Judge(host).judge(); }

std::string lacking_of(const JobSpec& spec, std::size_t host, const HostInventory& inventory) {
  const Placement placement(spec);
  const Resources resources(spec, placement);
  const bool has_slot = host < spec.hosts_needed();
  for (std::uint32_t m = 0; m < spec.meshes.size(); ++m) {
    for (std::uint32_t r = 0; r < spec.meshes[m].size(); r += spec.meshes[m].per_host()) {
      const RankId first{MeshId(m), Rank(r)};
      // A spare may come to any slot.
      if (has_slot && placement.host_of(first).value() != host) continue;
      const std::string lack = resources.lacking(first, inventory);
      if (!lack.empty()) return text("mesh ", spec.meshes[m].name, " ", lack);
    }
  }
  return "";
}

HostFindings host_findings(const std::vector<HostSeen>& hosts, const JobSpec& spec) {
  HostFindings findings;
  const HostFindings odd = odd_hosts(hosts);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    for (Finding& finding : findings_of(hosts[i])) findings.push_back({hosts[i].name, std::move(finding)});
    if (hosts[i].facts) {
      if (const std::string lack = lacking_of(spec, i, hosts[i].facts->inventory); !lack.empty()) {
        findings.push_back({hosts[i].name,
                            {.check = "resources",
                             .health = Health::kFailed,
                             .found = lack,
                             .means = "the job would not start there, and takes a spare if there is one",
                             .fix = "fewer ranks a host, less in `resources`, or other hosts"}});
      }
    }
    for (const HostFinding& finding : odd) {
      if (finding.host == hosts[i].name) findings.push_back(finding);
    }
  }
  return findings;
}

}  // namespace monarch::doctor
