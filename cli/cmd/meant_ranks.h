#pragma once

// MeantRanks: of a live job those ranks that a selection means, for commands that ask its supervisor something about
// them (hold, signal, stacks).
//
// Thread: the command's.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/args/command.h"
#include "cli/job/job_argument.h"
#include "supervisor/client/link/viewer_address.h"
#include "transport/messages/viewer.h"

namespace monarch {

struct MeantRanksOptions {
  std::string doing;  // "hold of", before the job's id in what goes wrong
  std::string verb;   // "hold": there is nothing to, once the job has ended
  std::function<bool(const RankStatus&)> counts = [](const RankStatus&) { return true; };
};

struct MeantRanks {
  std::unique_ptr<OpenedJob> job;  // nothing: stderr says why, and the command exits with `exit_code`
  int exit_code = 0;
  ViewerAddress supervisor;
  std::vector<RankId> ranks;
  std::vector<std::string> hosts;  // of each
  const std::string& id() const { return job->view.id(); }
};

// As they are now; `written` is the JOB of the command line.
MeantRanks take_ranks(const std::string& written, const Arguments& arguments, const Context& context,
                      const MeantRanksOptions& options);

// What the supervisor answered, or did not.
int refuse_call(const Context& context, const std::string& doing, const JobView& job, const Error& error);

}  // namespace monarch
