#pragma once

// How a job ended, as JUnit XML for CI systems: a suite for each mesh, a case for each rank. The rank that is the first
// cause carries it with the last lines of its stderr; a rank that was stopped because of another is skipped. What is no
// rank's fault is a case of its own. Whatever bytes a rank wrote, the file is well-formed XML 1.0.
//
// Thread: pure functions.

#include <string>

#include "transport/messages/viewer.h"

namespace monarch {

// `status` may have no meshes: nothing is known of the ranks.
std::string junit_xml(const JobStatus& status, const Verdict& verdict);

}  // namespace monarch
