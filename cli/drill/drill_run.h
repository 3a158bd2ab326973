#pragma once

// A drill from its scenario to its exit code: the job is started where it is to be the drill's own, drilled, ended, and
// what was seen is judged and left as files.
//
// Thread: the command's.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/args/command.h"
#include "cli/drill/drill_reports.h"
#include "cli/job/job_argument.h"
#include "cli/job/spec_input.h"
#include "supervisor/drill/core/scenario.h"

namespace monarch {

struct DrillWish {
  drill::Scenario scenario;
  std::uint64_t seed = 0;
  std::vector<std::string> left_out;
  std::vector<std::string> command;  // to run it again
  DrillPlaces places;
  bool keep = false;  // the job goes on
  bool json = false;
};

// What the command exits with. `peer`: the same job as one that stops and starts everything, to be compared with; null:
// nothing is.
int run_own_drill(const SpecInput& input, const SpecInput* peer, const DrillWish& wish, const Arguments& arguments,
                  const Context& context);
int run_live_drill(const OpenedJob& job, const DrillWish& wish, const Context& context);

}  // namespace monarch
