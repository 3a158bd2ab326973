#pragma once

// The smoke scenario: one fault of each class that a job can have, one after the other, with bounds that need no number
// from anybody. It is a text like any other scenario, made from the spec of the job, and read by the same reader.
//
// Thread: pure functions.

#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"

namespace monarch::drill {

struct SmokeScenario {
  std::string text;                   // for read_scenario(), and for people
  std::vector<std::string> left_out;  // a sentence for each fault that the spec cannot have
};

SmokeScenario smoke_scenario(const JobSpec& spec);

}  // namespace monarch::drill
