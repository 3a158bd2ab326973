#pragma once

// The JOB of a command line: found, opened, and with its spec; or the complaint that says why not.
//
// Thread: the command's.

#include <memory>
#include <optional>
#include <string>

#include "cli/args/command.h"
#include "supervisor/client/job_resolver.h"
#include "supervisor/client/job_view.h"
#include "supervisor/core/spec/job_spec.h"

namespace monarch {

struct OpenedJob {
  JobView view;
  JobSpec spec;

  // Of its hosts on request, the machines that they are; of every other job, nobody.
  std::vector<std::string> named_hosts() const;
};

// Nothing: stderr says why, and the command exits with `exit_code`.
struct JobArgument {
  std::unique_ptr<OpenedJob> job;
  int exit_code = 0;
};

JobArgument take_job(const std::string& written, const Context& context);

// What helps who got no answer of the job's supervisor; empty where one is there, or the job has ended meanwhile.
std::string help_without_supervisor(const JobView& view);

// A note on stderr where the journal of an ended job lacks its end: what a command shows of it is not all.
void say_missing_end(const JobView& view, const Context& context);

// The state directory as a command that reads takes it; nothing if no job was ever started here. A complaint was said
// where the exit code is not 0.
struct StateArgument {
  std::optional<StateDir> state;
  int exit_code = 0;
};
StateArgument take_state(const Context& context);

}  // namespace monarch
