#include "supervisor/doctor/state_checks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "supervisor/client/job_resolver.h"
#include "supervisor/client/remove_job.h"
#include "supervisor/doctor/machine_limits.h"
#include "supervisor/journal/job_lock.h"
#include "supervisor/journal/remove_tree.h"
#include "supervisor/journal/runtime_dir.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/process/job_marks.h"
#include "transport/process/read_small.h"
#include "transport/wire/runtime_directory.h"

namespace monarch::doctor {

namespace {

constexpr Duration kSlowSync = Duration::milliseconds(50);
constexpr std::string_view kLongestSocket = "abcdefghijklmnopqrstuvwxyz012345-0000.sock";

Finding failed(std::string check, std::string found, std::string means, std::string fix) {
  return {.check = std::move(check),
          .health = Health::kFailed,
          .found = std::move(found),
          .means = std::move(means),
          .fix = std::move(fix)};
}

// The nearest folder above that is there: what is missing below it will be made in it.
std::string nearest_parent(std::string path) {
  struct stat status {};
  while (path.size() > 1 && ::stat(path.c_str(), &status) != 0) {
    const std::size_t slash = path.rfind('/');
    path.resize(std::max<std::size_t>(slash == std::string::npos ? 0 : slash, 1));
  }
  return path;
}

Finding not_there_yet(const std::string& check, const std::string& path) {
  const std::string parent = nearest_parent(path);
  if (::access(parent.c_str(), W_OK | X_OK) == 0)
    return {.check = check, .found = path + ": will be made by the first job"};
  return failed(check, text(path, " is not there, and ", parent, " cannot be written to"), "no job can be started",
                "set MONARCH_STATE_DIR (or XDG_STATE_HOME) and XDG_RUNTIME_DIR to places of your own");
}

std::string mode_text(const SecureDirectory& directory) {
  struct stat status {};
  if (::fstat(directory.fd(), &status) != 0) return "?";
  std::string digits = "0000";
  for (std::size_t i = 0; i < 4; ++i) digits[3 - i] = static_cast<char>('0' + ((status.st_mode >> (3 * i)) & 7U));
  return digits;
}

Finding space_of(const SecureDirectory& root) {
  Finding finding{.check = "state directory"};
  struct statvfs space {};
  if (::fstatvfs(root.fd(), &space) != 0) {
    return failed(finding.check, errno_error(root.path(), errno).message, "no job can be started", "");
  }
  const std::uint64_t left = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  finding.found = text(root.path(), ": mode ", mode_text(root), ", ", size_text(left), " free");
  if (left >= kLittleSpace) return finding;
  finding.health = left < kNoSpace ? Health::kFailed : Health::kWarning;
  finding.means = "journals and the output of ranks are written here; a rank is held up when its host's disk is full";
  finding.fix = "monarch rm --older-than 7d, or MONARCH_STATE_DIR on a larger disk";
  return finding;
}

// A lock must hold off a second one, and what is written must reach the disk soon.
Findings try_folder(const SecureDirectory& root) {
  const std::string name = text(".doctor-", ::getpid());
  const auto probe = root.create_child(name);
  if (!probe.ok()) {
    return {failed("state directory", probe.error().message, "no job can be started", "make it writable for you")};
  }
  const auto lock = JobLock::take_silently(*probe);
  const Instant begun = boot_now();
  const Status written = probe->write_file("probe", std::string(4096, 'x'));
  const Duration took = boot_now() - begun;
  (void)remove_tree(root, name);  // what stays says so at the next job
  Findings findings;
  if (!lock.ok()) {
    findings.push_back(failed("locks", lock.error().message, "two supervisors could hold one job",
                              "MONARCH_STATE_DIR on a local disk, or on a network file system with locks"));
  } else {
    findings.push_back({.check = "locks", .found = "hold"});
  }
  Finding sync{.check = "disk", .found = text("4 KiB are safe on the disk after ", to_text(took))};
  if (!written.ok()) {
    sync = failed("disk", written.error().message, "no job can be started", "");
  } else if (took > kSlowSync) {
    sync.health = Health::kWarning;
    sync.means = "each decision of a supervisor waits for the disk about as long";
    sync.fix = "MONARCH_STATE_DIR on a faster disk";
  }
  findings.push_back(std::move(sync));
  return findings;
}

// By uuid: jobs of this state directory that nobody holds.
struct KnownUuids {
  std::map<std::string, std::string> over;
  std::map<std::string, std::string> live;
};

Result<std::optional<StateDir>> state_of(const StateEnvironment& environment) {
  MONARCH_ASSIGN(const std::string root, state_root(environment));
  auto state = StateDir::open(root);
  if (state.ok()) return std::optional<StateDir>(std::move(*state));
  if (state.error().code == ErrorCode::kNotFound) return std::optional<StateDir>();
  return state.error();
}

std::string pids_of(const std::vector<ProcessEntry>& entries) {
  constexpr std::size_t kMost = 5;
  std::vector<std::string> pids;
  for (const ProcessEntry& entry : entries) {
    if (pids.size() < kMost) pids.push_back(text(entry.pid));
  }
  return text(entries.size() == 1 ? "process " : text(entries.size(), " processes: "), join(pids, ", "),
              entries.size() > kMost ? ", …" : "");
}

}  // namespace

Findings check_state_directory(const StateEnvironment& environment) {
  const auto root = state_root(environment);
  if (!root.ok()) {
    return {failed("state directory", root.error().message, "no job can be started", "set MONARCH_STATE_DIR or HOME")};
  }
  const auto directory = SecureDirectory::open(*root);
  if (!directory.ok() && directory.error().code == ErrorCode::kNotFound)
    return {not_there_yet("state directory", *root)};
  if (!directory.ok()) {
    return {failed("state directory", directory.error().message, "no job can be started",
                   "make it your own folder, mode 0700, or set MONARCH_STATE_DIR to another")};
  }
  Findings findings = {space_of(*directory)};
  for (Finding& finding : try_folder(*directory)) findings.push_back(std::move(finding));
  return findings;
}

Findings check_runtime_directory(const StateEnvironment& environment) {
  const std::string check = "runtime directory";
  const std::string path = runtime_dir_path(environment);
  const std::size_t longest = path.size() + 1 + kLongestSocket.size();
  if (longest > kSocketPathBytes) {
    return {failed(
        check,
        text(path, ": a socket in it would have up to ", longest, " bytes, and an address ends at ", kSocketPathBytes),
        "jobs with long names cannot be started", "set XDG_RUNTIME_DIR to a shorter path")};
  }
  const auto directory = SecureDirectory::open(path);
  if (!directory.ok() && directory.error().code == ErrorCode::kNotFound) return {not_there_yet(check, path)};
  if (!directory.ok()) {
    return {failed(check, directory.error().message, "no job can be started",
                   "remove it, or set XDG_RUNTIME_DIR to a folder of your own")};
  }
  Finding finding{.check = check, .found = text(path, ": mode ", mode_text(*directory))};
  if (const auto squatted = squatted_directory({.uid = environment.uid})) {
    finding.health = Health::kNote;
    finding.means = text(*squatted, " is somebody else's: what would be there is elsewhere");
    finding.fix = "have it removed by its owner or by root";
  }
  const bool of_a_login = environment.xdg_runtime_dir.starts_with("/run/user/");  // passed over on purpose
  if (!environment.xdg_runtime_dir.empty() && !of_a_login && !path.starts_with(environment.xdg_runtime_dir + "/")) {
    finding.health = Health::kNote;
    finding.means =
        text("XDG_RUNTIME_DIR names ", printable(environment.xdg_runtime_dir), ", which is not your folder");
    finding.fix =
        "unset it, or log in anew; jobs that were started with another value are found by their endpoint all the same";
  }
  return {finding};
}

Findings check_leftovers(const StateEnvironment& environment) {
  const std::string check = "earlier jobs";
  const auto state = state_of(environment);
  if (!state.ok()) return {};  // the state directory's own check says so
  Findings findings;
  KnownUuids known;
  std::vector<KnownJob> jobs;
  if (*state) {
    auto listed = list_jobs(**state);
    if (listed.ok()) jobs = std::move(*listed);
  }
  for (const KnownJob& job : jobs) {
    const auto uuid = uuid_of_job(**state, job.id);
    if (uuid) (job.life == JobLife::kLive ? known.live : known.over).emplace(*uuid, job.id);
    if (job.life != JobLife::kAbandoned) continue;
    findings.push_back({.check = check,
                        .health = Health::kWarning,
                        .found = text(job.id, " has neither a supervisor nor a verdict"),
                        .means = "its supervisor and its guard were killed, or the machine was",
                        .fix = text("monarch rm ", job.id)});
  }
  std::size_t strangers = 0;
  for (const auto& [uuid, processes] : marked_processes()) {
    if (const auto over = known.over.find(uuid); over != known.over.end()) {
      findings.push_back({.check = check,
                          .health = Health::kWarning,
                          .found = text(over->second, " is over, and left ", pids_of(processes)),
                          .means = "they hold memory, GPUs and ports",
                          .fix = text("monarch rm ", over->second)});
    } else if (!known.live.contains(uuid)) {
      strangers += processes.size();
    }
  }
  if (strangers > 0) {
    findings.push_back({.check = check,
                        .health = Health::kNote,
                        .found = text(strangers, " processes of jobs that this state directory does not know"),
                        .means = "they were started with another MONARCH_STATE_DIR, or from another machine's",
                        .fix = "monarch doctor with that MONARCH_STATE_DIR"});
  }
  if (findings.empty()) findings.push_back({.check = check, .found = text("left nothing; ", jobs.size(), " are kept")});
  return findings;
}

Findings check_sockets(const StateEnvironment& environment) {
  const std::string check = "sockets";
  const std::string path = runtime_dir_path(environment);
  const auto directory = SecureDirectory::open(path);
  const auto state = state_of(environment);
  if (!directory.ok() && directory.error().code == ErrorCode::kNotFound) return {{.check = check, .found = "none yet"}};
  if (!directory.ok() || !state.ok()) return {};  // the folders' own checks say so
  Findings findings;
  std::size_t used = 0;
  for (const std::string& name : names_in(path)) {
    const std::string id = name.substr(0, name.rfind('.'));
    if (!name.ends_with(".sock") || !is_job_id(id)) continue;
    const auto job = *state ? (*state)->open_job(id) : Result<JobDirectory>(Error{ErrorCode::kNotFound, ""});
    const auto held = job.ok() ? is_kept(job->directory) : Result<bool>(false);
    if (held.ok() && *held) {
      ++used;
      continue;
    }
    findings.push_back(
        {.check = check,
         .health = Health::kNote,
         .found = text(path, "/", name, ": nobody of this state directory answers there"),
         .means = "its supervisor was killed; or it belongs to a job of another MONARCH_STATE_DIR",
         .fix = job.ok() ? text("monarch rm ", id) : text("rm ", path, "/", name, ", if no such job lives")});
  }
  if (findings.empty()) findings.push_back({.check = check, .found = text("none is stale; ", used, " in use")});
  return findings;
}

}  // namespace monarch::doctor
