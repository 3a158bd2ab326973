#include "supervisor/journal/state_dir.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "supervisor/journal/journal_files.h"
#include "transport/base/machine.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kJobs = "jobs";
constexpr std::size_t kSuffixDigits = 4;
constexpr int kTries = 64;
// The journal of a small job with its first segments and logs; less and the job is not worth starting.
constexpr std::uint64_t kFreeBytes = 8U << 20U;
// What we put below the root: "/jobs/<32>-<4>/logs/<mesh>/<rank>.<generation>.err" and temporary names.
constexpr std::size_t kLongestBelowRoot = 192;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

Status check_space(const SecureDirectory& directory) {
  struct statvfs space {};
  if (::fstatvfs(directory.fd(), &space) < 0) return errno_error(text("statvfs of ", directory.path()), errno);
  const std::uint64_t free_bytes = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  const bool no_inodes = space.f_files > 0 && space.f_favail == 0;
  if (free_bytes >= kFreeBytes && !no_inodes) return {};
  return Error{ErrorCode::kBusy,
               text("no space for a job in ", directory.path(), ": ", free_bytes >> 10U, " KiB",
                    no_inodes ? " and no inodes" : "", " are free, ", kFreeBytes >> 10U, " KiB are needed")};
}

Status check_writable(const SecureDirectory& directory) {
  const std::string probe = text(".probe.", ::getpid());
  const Status written = directory.write_file(probe, std::string(4096, '\0'), Durability::kLater);
  (void)::unlinkat(directory.fd(), probe.c_str(), 0);  // it may not be there
  if (written.ok()) return {};
  return Error{written.error().code, text("the state directory cannot be used: ", written.error().message)};
}

}  // namespace

std::string random_suffix() { return to_hex(random_bytes(kSuffixDigits / 2)); }

StateEnvironment StateEnvironment::of_this_process() {
  return {variable("MONARCH_STATE_DIR"), variable("XDG_STATE_HOME"), variable("XDG_RUNTIME_DIR"), variable("HOME"),
          ::geteuid()};
}

Result<std::string> state_root(const StateEnvironment& environment) {
  std::string root;
  std::string_view from;
  if (!environment.monarch_state_dir.empty()) {
    root = environment.monarch_state_dir;
    from = "MONARCH_STATE_DIR";
  } else if (!environment.xdg_state_home.empty()) {
    root = environment.xdg_state_home + "/monarch";
    from = "XDG_STATE_HOME";
  } else if (!environment.home.empty()) {
    root = environment.home + "/.local/state/monarch";
    from = "HOME";
  } else {
    return Error{ErrorCode::kInvalid, "no place for job state: set HOME, XDG_STATE_HOME or MONARCH_STATE_DIR"};
  }
  if (root.front() != '/') {
    return Error{ErrorCode::kInvalid,
                 text("the state directory \"", printable(root), "\" (from ", from, ") has to be an absolute path")};
  }
  if (root.size() + kLongestBelowRoot > PATH_MAX) {
    return Error{ErrorCode::kInvalid,
                 text("the state directory from ", from, " has ", root.size(), " bytes, more than the ",
                      PATH_MAX - kLongestBelowRoot, " that leave room for a job's files")};
  }
  return root;
}

bool is_job_id(std::string_view id) {
  if (id.size() < kSuffixDigits + 2) return false;
  const std::string_view name = id.substr(0, id.size() - kSuffixDigits - 1);
  const std::string_view suffix = id.substr(id.size() - kSuffixDigits);
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return id[name.size()] == '-' && name.size() <= 32 && name.front() >= 'a' && name.front() <= 'z' &&
         std::all_of(name.begin(), name.end(), fits) && std::all_of(suffix.begin(), suffix.end(), is_hex);
}

Result<StateDir> StateDir::open_for_writing(const std::string& root) {
  MONARCH_ASSIGN(const SecureDirectory directory, SecureDirectory::open_or_create(root));
  MONARCH_ASSIGN(SecureDirectory jobs, directory.child_or_create(std::string(kJobs)));
  MONARCH_TRY(check_space(jobs));
  MONARCH_TRY(check_writable(jobs));
  return StateDir(std::move(jobs));
}

Result<StateDir> StateDir::open(const std::string& root) {
  MONARCH_ASSIGN(const SecureDirectory directory, SecureDirectory::open(root));
  MONARCH_ASSIGN(SecureDirectory jobs, directory.child(std::string(kJobs)));
  return StateDir(std::move(jobs));
}

Result<SecureDirectory> StateDir::root() const {
  return SecureDirectory::open(jobs_.path().substr(0, jobs_.path().rfind('/')));
}

Result<JobDirectory> StateDir::create_job(std::string_view name, const SuffixSource& suffix) const {
  for (int tries = 0; tries < kTries; ++tries) {
    MONARCH_ASSIGN(const std::string digits, suffix());
    std::string id = text(name, '-', digits);
    if (!is_job_id(id)) return Error{ErrorCode::kInvalid, text("\"", printable(name), "\" cannot name a job")};
    auto made = jobs_.create_child(id);
    if (made.ok()) return JobDirectory{std::move(id), std::move(*made)};
    if (made.error().code != ErrorCode::kBusy) return made.error();
  }
  return Error{ErrorCode::kBusy, text("no free id for a job called ", name, " in ", jobs_.path(), " after ", kTries,
                                      " tries: remove old ones with `monarch rm`")};
}

Result<JobDirectory> StateDir::open_job(const std::string& id) const {
  if (!is_job_id(id)) return Error{ErrorCode::kInvalid, text("\"", printable(id), "\" is not the id of a job")};
  MONARCH_ASSIGN(SecureDirectory directory, jobs_.child(id));
  return JobDirectory{id, std::move(directory)};
}

Result<std::vector<std::string>> StateDir::list_jobs() const {
  MONARCH_ASSIGN(UniqueFd copy, jobs_.duplicate());
  MONARCH_ASSIGN(std::vector<std::string> names, posix_journal_files(std::move(copy))->list());
  std::erase_if(names, [](const std::string& name) { return !is_job_id(name); });
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace monarch
