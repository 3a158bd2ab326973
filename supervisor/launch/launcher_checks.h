#pragma once

// launcher_checks(): what a spec's launcher needs of this machine. Nothing is started.
//
// Thread: any; they wait for the disk.

#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/doctor/finding.h"
#include "supervisor/doctor/spec_checks.h"
#include "supervisor/launch/launchers.h"

namespace monarch {

std::vector<doctor::Check> launcher_checks(const JobSpec& spec, const doctor::Variables& environment);

// One for each launcher.
#define MONARCH_DECLARE_CHECKS(name) \
  std::vector<doctor::Check> name##_checks(const JobSpec& spec, const doctor::Variables& environment);
MONARCH_LAUNCHERS(MONARCH_DECLARE_CHECKS)
#undef MONARCH_DECLARE_CHECKS

}  // namespace monarch
