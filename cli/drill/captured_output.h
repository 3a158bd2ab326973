#pragma once

// What ranks wrote in the end, as a pattern takes it: of each rank the last line of its standard output that has it, by
// whichever of its generations. Two runs of one program are held against each other by that.
//
// Thread: the command's; it reads the job's log files.

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "cli/follow/line_pattern.h"
#include "supervisor/client/job_view.h"
#include "supervisor/core/spec/job_spec.h"

namespace monarch {

// By mesh and rank; ranks that wrote no such line are not there.
using CapturedOutput = std::map<std::pair<std::string, std::uint32_t>, std::string>;

CapturedOutput captured_output(const JobView& job, const JobSpec& spec, const LinePattern& pattern);
// Empty: they are the same. Else which rank differs, and how many more.
std::string difference_of(const CapturedOutput& drilled, const CapturedOutput& undisturbed);

}  // namespace monarch
