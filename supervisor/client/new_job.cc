#include "supervisor/client/new_job.h"

#include "supervisor/client/start_supervisor.h"
#include "supervisor/journal/runtime_dir.h"
#include "transport/base/text.h"

namespace monarch {

Result<NewJob> make_job(std::string_view name, std::string_view spec, std::string_view spec_directory) {
  const StateEnvironment environment = StateEnvironment::of_this_process();
  MONARCH_ASSIGN(const std::string root, state_root(environment));
  MONARCH_ASSIGN(StateDir state, StateDir::open_for_writing(root));
  // The supervisor's socket will be there: whether it may be is better known now.
  MONARCH_ASSIGN(const SecureDirectory runtime, open_runtime_dir(environment));
  MONARCH_ASSIGN(const std::string socket, socket_path(runtime, text(name, "-0000.sock")));  // as long as any id's
  MONARCH_ASSIGN(JobDirectory job, state.create_job(name));
  MONARCH_TRY(write_job_files(job, spec, spec_directory));
  return NewJob{.state = std::move(state), .job = std::move(job)};
}

Status write_job_files(const JobDirectory& job, std::string_view spec, std::string_view spec_directory) {
  MONARCH_TRY(job.directory.write_file(kSpecFile, spec));
  return job.directory.write_file(kSpecDirectoryFile, spec_directory);
}

Result<StateDir> open_state() {
  MONARCH_ASSIGN(const std::string root, state_root(StateEnvironment::of_this_process()));
  return StateDir::open(root);
}

}  // namespace monarch
