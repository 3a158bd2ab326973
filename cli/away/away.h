#pragma once

// Jobs whose supervisor lives on one of their hosts (`supervisor: {on: first}`): a command that is given such a job
// runs on that host, over SSH, and what it shows, takes and exits with is as if it ran here.
//
// Thread: the command's. The session has a thread of its own.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/args/command.h"
#include "cli/follow/run_reports.h"
#include "cli/follow/signal_policy.h"
#include "supervisor/client/away.h"
#include "supervisor/client/job_view.h"
#include "transport/loop/signals.h"

namespace monarch {

// Where a job of this machine's folder lives; nothing: here, or it never came so far as to live anywhere.
std::optional<Away> away_of(const JobView& view);

struct RemoteCommand {
  std::vector<std::string> words;       // as command_words() makes them
  std::vector<std::string> again = {};  // in place of a viewer that has ended there before we came back; empty: nothing
  ViewerKind kind = ViewerKind::kWatcher;
  bool follows = false;  // a lost connection is made again
  RunReports reports = {};
};

// Runs it where the job lives; what it exits with. `signals`: of the job's owner, taken already.
int run_there(const JobView& view, const RemoteCommand& command, const Context& context, SignalFd* signals = nullptr);

// What `run` and `up` do once their job lives elsewhere.
struct FollowThere {
  bool until_running = false;
  std::string spec_name;
  RunReports reports = {};
};
int follow_there(const JobView& view, const Arguments& arguments, const Context& context, SignalFd& signals,
                 const FollowThere& follow);

// The same command, for a JOB as its first argument that may live elsewhere.
Command where_the_job_lives(Command command);

}  // namespace monarch
