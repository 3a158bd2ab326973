#pragma once

// What a job takes of the shell that starts it: the variables that $(env.NAME) names and env_pass lets through. They
// reach a supervisor by its environment and are in no file. A supervisor on this machine has the shell's own; one
// elsewhere has an environment of that machine's, and in it these, each behind a prefix, so that a HOME of the shell is
// not taken for that machine's.
//
// Thread: pure functions.

#include <map>
#include <string>
#include <string_view>

#include "supervisor/core/spec/job_spec.h"
#include "transport/base/result.h"

namespace monarch {

inline constexpr std::string_view kShellPrefix = "MONARCH_SHELL_";

// Of an environment as environ(7) is. kInvalid: $(env.NAME) names one that is not there.
Result<std::map<std::string, std::string>> shell_values(const JobSpec& spec, const char* const* environment,
                                                        std::string_view prefix = "");

}  // namespace monarch
