#pragma once

// Flags that several following commands share, and one call that follows a job with them.
//
// Thread: the command's.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/job_argument.h"
#include "cli/viewer_session.h"

namespace monarch {

// --json and --no-prefix.
std::vector<Flag> output_flags();
LineStyle line_style(const Arguments& arguments);

// --mesh, --rank, --stdout and --stderr.
std::vector<Flag> selection_flags();
// Nothing: stderr says what is wrong.
std::optional<std::function<bool(const StreamId&)>> selection(const Arguments& arguments, const JobSpec& spec,
                                                              const Context& context);

// Nothing: its value is wrong, and stderr says so.
std::optional<std::optional<Duration>> timeout_flag(const Arguments& arguments, const Context& context);

// Takes the signals, follows, and says what kept it from following. `signals` may have been taken before.
SessionEnd follow_job(const OpenedJob& job, const Context& context, SessionOptions options);
SessionEnd follow_job(const JobView& view, const JobSpec& spec, const Context& context, SignalFd& signals,
                      SessionOptions options);

}  // namespace monarch
