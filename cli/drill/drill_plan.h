#pragma once

// What a command line of `monarch drill` asks for, as a scenario that was held against its job; and what it shows
// without drilling anything.
//
// Thread: the command's.

#include <optional>
#include <string>
#include <vector>

#include "cli/args/command.h"
#include "cli/drill/drill_rights.h"
#include "cli/drill/drill_run.h"
#include "cli/job/job_argument.h"
#include "cli/job/spec_input.h"
#include "supervisor/drill/core/scenario.h"

namespace monarch {

struct PlannedDrill {
  drill::Scenario scenario;
  std::string text;  // of the scenario
  std::vector<std::string> left_out;
  std::optional<SpecInput> input = {};  // of a job that is to be started
  std::optional<SpecInput> peer = {};   // with `compare`: of the same that stops and starts everything
};

// Nothing: stderr says why.
std::optional<PlannedDrill> plan_own_drill(const Arguments& arguments, const Context& context);
std::optional<PlannedDrill> plan_live_drill(const OpenedJob& job, const Arguments& arguments, const Context& context);

// Who would be struck when, where all of the job is well. `rights`: of a job that runs, else null.
std::string dry_run_text(const DrillWish& wish, const JobSpec& spec, const JobRights* rights, bool colour);

// What the command exits with.
int show_faults(const Arguments& arguments, const Context& context);
int replay_drill(const Arguments& arguments, const Context& context);

}  // namespace monarch
