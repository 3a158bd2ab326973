#pragma once

// `monarch restart`, `drain`, `undrain` and `retry` after their arguments were read: the supervisor of the job is
// asked, and what it answers is shown, as a line or with --json as an object.
//
// Thread: the command's.

#include <optional>
#include <vector>

#include "cli/args/command.h"
#include "cli/job/job_argument.h"
#include "transport/messages/viewer.h"

namespace monarch {

// One rank of each gang that the selector's flags mean, as the job is now; nothing: stderr says why, and `exit_code` is
// set.
std::optional<std::vector<RankId>> gangs_meant(const OpenedJob& job, const Arguments& arguments, const Context& context,
                                               int& exit_code);

// HOSTS as it is written, each of the job's pool; nothing: stderr says which is not.
std::optional<std::vector<std::string>> hosts_meant(const OpenedJob& job, const std::string& written,
                                                    const Context& context);

// What the command exits with. `request.who` is filled in.
int ask_the_supervisor(const OpenedJob& job, OperatorRequest request, const Arguments& arguments,
                       const Context& context);

}  // namespace monarch
