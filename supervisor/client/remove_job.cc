#include "supervisor/client/remove_job.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "supervisor/client/continuation.h"
#include "supervisor/client/job_view.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/journal/core_records.h"
#include "supervisor/journal/job_lock.h"
#include "supervisor/journal/journal_files.h"
#include "supervisor/journal/runtime_dir.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/process/containment.h"
#include "transport/process/job_marks.h"
#include "transport/wire/socket_directory.h"

namespace monarch {

namespace {

constexpr std::string_view kRemoving = ".removing-";
constexpr Duration kLeaves = Duration::seconds(5);   // a supervisor that has just ended its job
constexpr Duration kKilled = Duration::seconds(10);  // what got KILL
constexpr Duration kLook = Duration::milliseconds(20);

// Why it counts as alive; nothing: it does not. A job that has ended is waited for: its supervisor leaves a moment
// later.
std::optional<std::string> alive_because(const SecureDirectory& job, bool ended) {
  const Instant deadline = boot_now() + (ended ? kLeaves : Duration::zero());
  for (;;) {
    std::optional<std::string> why;
    if (const auto holder = lock_holder(job); holder.ok() && *holder) {
      why = text("its supervisor, pid ", (*holder)->pid, " on ", printable((*holder)->host), ", holds it");
    } else if (const auto guard = guard_holder(job); guard.ok() && *guard) {
      why = text("its guard, pid ", (*guard)->pid, ", starts its supervisor again");
    }
    if (!why || boot_now() >= deadline) return why;
    (void)::poll(nullptr, 0, static_cast<int>(kLook.count_milliseconds()));
  }
}

// From the journal; nothing where that cannot be read or says nothing: then no process can be told to be of this job.
std::optional<std::string> uuid_of(const SecureDirectory& job) {
  auto directory = job.duplicate();
  if (!directory.ok()) return std::nullopt;
  const std::unique_ptr<JournalFiles> files = posix_journal_files(std::move(*directory));
  const auto contents = read_journal(*files);
  if (!contents.ok()) return std::nullopt;
  if (contents->snapshot) {
    const auto state = decode_job_state(contents->snapshot->bytes);
    if (state.ok()) return state->job.to_text();
  }
  for (const std::vector<Record>* part : {&contents->history, &contents->records}) {
    for (const Record& record : *part) {
      if (record.type != RecordType::kInput) continue;
      const auto event = decode_core_event(record.payload);
      const JobBegun* begun = event.ok() ? std::get_if<JobBegun>(&*event) : nullptr;
      if (begun != nullptr) return begun->job.to_text();
    }
  }
  return std::nullopt;
}

struct Socket {
  SecureDirectory directory;
  std::string name;
  std::string path() const { return text(directory.path(), "/", name); }
};

std::string socket_name(const JobView& view) { return view.id() + ".sock"; }

// Where the sockets of the job may still be: where the endpoint says, and where they would be now.
std::vector<std::string> runtime_folders(const JobView& view) {
  const std::string name = socket_name(view);
  std::vector<std::string> folders;
  if (const auto endpoint = view.endpoint(); endpoint.ok()) {
    const std::size_t slash = endpoint->socket.rfind('/');
    if (slash != std::string::npos && slash > 0 && endpoint->socket.substr(slash + 1) == name) {
      folders.push_back(endpoint->socket.substr(0, slash));
    }
  }
  if (auto now = runtime_dir_path(StateEnvironment::of_this_process()); folders.empty() || folders.front() != now) {
    folders.push_back(std::move(now));
  }
  return folders;
}

std::vector<Socket> sockets_of(const JobView& view) {
  const std::string name = socket_name(view);
  std::vector<Socket> found;
  for (const std::string& folder : runtime_folders(view)) {
    auto directory = SecureDirectory::open(folder);  // of ours alone, or nothing in it is ours to remove
    struct stat status {};
    if (!directory.ok() || ::fstatat(directory->fd(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISSOCK(status.st_mode)) found.push_back({std::move(*directory), name});
  }
  return found;
}

// Those of its workers, for their ranks: a keeper and a daemon that were killed together leave theirs.
std::vector<std::string> socket_directories_of(const JobView& view, const std::string& uuid) {
  const std::string prefix = socket_directory_prefix(uuid);
  std::vector<std::string> found;
  for (const std::string& folder : runtime_folders(view)) {
    const auto directory = SecureDirectory::open(folder);  // of ours alone, or nothing in it is ours to remove
    if (!directory.ok()) continue;
    std::error_code unreadable;  // then there is nothing to be found
    for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
      if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
    }
  }
  return found;
}

struct Remains {
  std::optional<std::string> uuid;
  std::vector<Socket> sockets;
  std::vector<std::string> socket_directories;
  bool ended = false;
};

Result<Remains> look(const StateDir& state, const std::string& id) {
  MONARCH_ASSIGN(const JobView view, JobView::open(state, id));
  Remains remains;
  const auto verdict = view.verdict();
  remains.ended = verdict.ok() && verdict->has_value();
  if (view.queued()) {
    return Error{ErrorCode::kBusy, text(id, " is in Slurm's queue: `monarch stop ", id, "` takes it out")};
  }
  if (const auto by = needed_by(state, view.directory())) {
    return Error{ErrorCode::kUnsupported, text(*by, ", which has not ended, goes on from ", id)};
  }
  const auto endpoint = view.endpoint();
  if (!remains.ended && endpoint.ok() && endpoint->host != name_of_this_machine()) {
    return Error{ErrorCode::kUnsupported, text(id, " has no verdict and was last run on ", printable(endpoint->host),
                                               ", whose processes cannot be seen from here: run `monarch rm ", id,
                                               "` there; if that machine is gone for good, delete ", view.path())};
  }
  if (auto why = alive_because(view.directory().directory, remains.ended)) {
    return Error{ErrorCode::kBusy, text(id, " is live: ", *why)};
  }
  remains.uuid = uuid_of(view.directory().directory);
  remains.sockets = sockets_of(view);
  if (remains.uuid) remains.socket_directories = socket_directories_of(view, *remains.uuid);
  return remains;
}

// Of the folders of the workers' state too; those are not there after an orderly end.
Result<TreeSize> add_hosts(const StateDir& state, const std::string& id, TreeSize size,
                           Result<TreeSize> (*act)(const SecureDirectory&, const std::string&)) {
  MONARCH_ASSIGN(const SecureDirectory root, state.root());
  auto hosts = root.child("hosts");
  if (!hosts.ok()) return hosts.error().code == ErrorCode::kNotFound ? Result<TreeSize>(size) : hosts.error();
  const auto of_job = act(*hosts, id);
  if (!of_job.ok()) return of_job.error().code == ErrorCode::kNotFound ? Result<TreeSize>(size) : of_job;
  return TreeSize{.entries = size.entries + of_job->entries, .bytes = size.bytes + of_job->bytes};
}

Status end_processes(const std::string& id, const std::string& uuid, JobRemains& removed) {
  if (carries_mark(::getpid(), uuid)) {
    return Error{ErrorCode::kBusy,
                 text("this very process was started by a rank of ", id, ": remove it from elsewhere")};
  }
  const EndedProcesses ended = end_marked({.uuid = uuid}, kKilled);
  removed.processes = ended.ended;
  if (ended.left.empty()) return {};
  std::vector<std::string> pids;
  for (const pid_t pid : ended.left) pids.push_back(text(pid));
  return Error{ErrorCode::kInternal,
               text("processes of ", id, " did not end within ", to_text(kKilled), " of SIGKILL: ", join(pids, ", "),
                    "; their state in /proc says what they wait for")};
}

// Who is on its way out, and waits for a disk there, has no environment any more that could tell whose he is; but he is
// still in the job's cgroup, which nobody would ever find again without the job's folder.
Status expect_no_groups(const std::string& id, const std::string& uuid) {
  if (count_job_groups(uuid) == 0) return {};
  return Error{ErrorCode::kInternal, text("something in the cgroup of ", id, " did not end within ", to_text(kKilled),
                                          " of SIGKILL: cgroup.procs in the folder monarch-", uuid, " says which")};
}

}  // namespace

Result<JobRemains> remains_of(const StateDir& state, const std::string& id) {
  MONARCH_ASSIGN(const Remains remains, look(state, id));
  JobRemains found;
  if (remains.uuid) {
    found.processes = processes_of_job({.uuid = *remains.uuid}).size();
    found.groups = count_job_groups(*remains.uuid);
  }
  for (const Socket& socket : remains.sockets) found.sockets.push_back(socket.path());
  for (const std::string& folder : remains.socket_directories) found.sockets.push_back(folder);
  MONARCH_ASSIGN(const TreeSize job, measure_tree(state.jobs(), id));
  MONARCH_ASSIGN(found.files, add_hosts(state, id, job, measure_tree));
  return found;
}

Result<JobRemains> remove_job(const StateDir& state, const std::string& id) {
  MONARCH_ASSIGN(const Remains remains, look(state, id));
  MONARCH_ASSIGN(const JobDirectory job, state.open_job(id));
  MONARCH_ASSIGN(const std::unique_ptr<JobLock> lock, JobLock::take_silently(job.directory));
  JobRemains removed;
  if (remains.uuid) {
    MONARCH_TRY(end_processes(id, *remains.uuid, removed));
    removed.groups = remove_job_groups(*remains.uuid, kKilled);
    MONARCH_TRY(expect_no_groups(id, *remains.uuid));
  }
  for (const Socket& socket : remains.sockets) {
    if (::unlinkat(socket.directory.fd(), socket.name.c_str(), 0) != 0 && errno != ENOENT) {
      return errno_error(text("remove ", socket.path()), errno);
    }
    removed.sockets.push_back(socket.path());
  }
  for (const std::string& folder : remains.socket_directories) {
    if (!remove_socket_directory(folder)) {
      return Error{ErrorCode::kInternal, text(folder, " could not be removed: something in it is no socket of ours")};
    }
    removed.sockets.push_back(folder);
  }
  const std::string doomed = text(kRemoving, id);
  if (::renameat(state.jobs().fd(), id.c_str(), state.jobs().fd(), doomed.c_str()) != 0) {
    return errno_error(text("rename ", job.directory.path()), errno);
  }
  MONARCH_ASSIGN(const TreeSize files, remove_tree(state.jobs(), doomed));
  MONARCH_ASSIGN(removed.files, add_hosts(state, id, files, remove_tree));
  return removed;
}

std::optional<std::string> uuid_of_job(const StateDir& state, const std::string& id) {
  const auto job = state.open_job(id);
  return job.ok() ? uuid_of(job->directory) : std::nullopt;
}

Result<std::size_t> finish_removals(const StateDir& state) {
  MONARCH_ASSIGN(UniqueFd copy, state.jobs().duplicate());
  MONARCH_ASSIGN(const std::vector<std::string> names, posix_journal_files(std::move(copy))->list());
  std::size_t count = 0;
  for (const std::string& name : names) {
    if (!name.starts_with(kRemoving) || !is_job_id(name.substr(kRemoving.size()))) continue;
    MONARCH_ASSIGN(const TreeSize rest, remove_tree(state.jobs(), name));
    count += rest.entries > 0 ? 1 : 0;
  }
  return count;
}

WallTime ended_at(const StateDir& state, const std::string& id) {
  const auto view = JobView::open(state, id);
  if (!view.ok()) return {};
  const auto verdict = view->verdict();
  if (verdict.ok() && *verdict) return (*verdict)->ended;
  struct stat status {};
  if (::fstat(view->directory().directory.fd(), &status) != 0) return {};
  return {static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec};
}

}  // namespace monarch
