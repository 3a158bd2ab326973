#pragma once

// StateDir: where jobs keep what outlives their supervisor: <root>/jobs/<id>/. The root is $MONARCH_STATE_DIR, or
// $XDG_STATE_HOME/monarch, or ~/.local/state/monarch. It does not know what the files of a job mean, and does not
// resolve what a user typed to an id.
//
// Thread: any; touches the file system.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/journal/secure_directory.h"
#include "transport/base/result.h"

namespace monarch {

// What the choice of places depends on. Empty strings count as unset, as the XDG specification says.
struct StateEnvironment {
  std::string monarch_state_dir;
  std::string xdg_state_home;
  std::string xdg_runtime_dir;
  std::string home;
  std::uint32_t uid = 0;

  static StateEnvironment of_this_process();
};

// kInvalid if nothing says where, or it says a relative path.
Result<std::string> state_root(const StateEnvironment& environment);

bool is_job_id(std::string_view id);
std::string random_suffix();

// A job's folder, made or found.
struct JobDirectory {
  std::string id;
  SecureDirectory directory;
};

class StateDir {
 public:
  // Makes what is missing, and tries at once whether a job could be written here: not ours, unwritable, full and too
  // long a path are each said before anything is started.
  static Result<StateDir> open_for_writing(const std::string& root);
  // kNotFound if there is none yet.
  static Result<StateDir> open(const std::string& root);

  // Makes jobs/<name>-<4 hex>. kBusy after many collisions. `suffix` makes the four digits.
  using SuffixSource = std::function<Result<std::string>()>;
  Result<JobDirectory> create_job(std::string_view name, const SuffixSource& suffix = random_suffix) const;
  Result<JobDirectory> open_job(const std::string& id) const;
  // Ids in alphabetical order; names that are no id of ours are left out.
  Result<std::vector<std::string>> list_jobs() const;

  const std::string& path() const { return jobs_.path(); }
  // <root>, opened anew.
  Result<SecureDirectory> root() const;
  const SecureDirectory& jobs() const { return jobs_; }

 private:
  explicit StateDir(SecureDirectory jobs) : jobs_(std::move(jobs)) {}
  SecureDirectory jobs_;
};

}  // namespace monarch
