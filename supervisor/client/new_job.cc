#include "supervisor/client/new_job.h"

#include "supervisor/client/start_supervisor.h"
#include "supervisor/journal/runtime_dir.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

Result<NewJob> make(std::string_view name, const NewJobFiles& files, const StateDir::SuffixSource& suffix) {
  const StateEnvironment environment = StateEnvironment::of_this_process();
  MONARCH_ASSIGN(const std::string root, state_root(environment));
  MONARCH_ASSIGN(StateDir state, StateDir::open_for_writing(root));
  // The supervisor's socket will be there: whether it may be is better known now.
  MONARCH_ASSIGN(const SecureDirectory runtime, open_runtime_dir(environment));
  MONARCH_ASSIGN(const std::string socket, socket_path(runtime, text(name, "-0000.sock")));  // as long as any id's
  MONARCH_ASSIGN(JobDirectory job, state.create_job(name, suffix));
  MONARCH_TRY(write_job_files(job, files));
  return NewJob{.state = std::move(state), .job = std::move(job)};
}

}  // namespace

Result<NewJob> make_job(std::string_view name, const NewJobFiles& files) { return make(name, files, random_suffix); }

Result<NewJob> make_job_of_id(const std::string& id, const NewJobFiles& files) {
  if (!is_job_id(id)) return Error{ErrorCode::kInvalid, text("`", printable(id), "` is no id of a job")};
  const std::size_t dash = id.rfind('-');
  auto made =
      make(id.substr(0, dash), files, [suffix = id.substr(dash + 1)]() -> Result<std::string> { return suffix; });
  if (made.ok() || made.error().code != ErrorCode::kBusy) return made;
  return Error{ErrorCode::kBusy, text("there is a job ", id, " on this machine already")};
}

Status write_job_files(const JobDirectory& job, const NewJobFiles& files) {
  std::vector<std::string> written;
  const auto write = [&](const char* name, std::string_view bytes) {
    written.emplace_back(name);
    return job.directory.write_file(name, bytes, Durability::kLater);
  };
  MONARCH_TRY(write(kSpecFile, files.spec));
  MONARCH_TRY(write(kSpecDirectoryFile, files.spec_directory));
  if (!files.origin.empty()) MONARCH_TRY(write(kSpecOriginFile, files.origin));
  return files.durability == Durability::kNow ? job.directory.sync_files(written) : Status();
}

Result<StateDir> open_state() {
  MONARCH_ASSIGN(const std::string root, state_root(StateEnvironment::of_this_process()));
  return StateDir::open(root);
}

}  // namespace monarch
