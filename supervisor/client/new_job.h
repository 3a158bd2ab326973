#pragma once

// make_job(): a folder for a job that is about to start, with its spec in it. Everything that can be wrong with the places where jobs
// are kept is said here, before anything is started.
//
// Thread: the command's; touches the file system.

#include <string_view>

#include "supervisor/journal/state_dir.h"
#include "transport/base/result.h"

namespace monarch {

struct NewJob {
  StateDir state;
  JobDirectory job;
};

// kInvalid: a place is not ours, or its path is too long; others: it cannot be written to.
Result<NewJob> make_job(std::string_view name, std::string_view spec, std::string_view spec_directory);

// Writes spec.yaml and spec.dir.
Status write_job_files(const JobDirectory& job, std::string_view spec, std::string_view spec_directory);

// The state directory for a command that reads; kNotFound if no job was ever started here.
Result<StateDir> open_state();

}  // namespace monarch
