#pragma once

// make_job(): a folder for a job that is about to start, with its spec in it. Everything that can be wrong with the
// places where jobs are kept is said here, before anything is started.
//
// Thread: the command's; touches the file system.

#include <string_view>

#include "supervisor/journal/state_dir.h"
#include "transport/base/result.h"

namespace monarch {

struct NewJobFiles {
  std::string_view spec;                     // spec.yaml
  std::string_view spec_directory;           // spec.dir
  std::string_view origin = {};              // spec.from; none if it is empty
  Durability durability = Durability::kNow;  // later: the supervisor that is about to be started sees to it
};

struct NewJob {
  StateDir state;
  JobDirectory job;
};

// kInvalid: a place is not ours, or its path is too long; others: it cannot be written to.
Result<NewJob> make_job(std::string_view name, const NewJobFiles& files);
// Under an id that another machine has given it. kBusy: there is one of that id.
Result<NewJob> make_job_of_id(const std::string& id, const NewJobFiles& files);

Status write_job_files(const JobDirectory& job, const NewJobFiles& files);

// The state directory for a command that reads; kNotFound if no job was ever started here.
Result<StateDir> open_state();

}  // namespace monarch
