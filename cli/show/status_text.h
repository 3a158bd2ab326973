#pragma once

// A job's status as tables for people: the job, its meshes with their ranks, its hosts.
//
// Thread: a pure function.

#include <string>

#include "cli/term/terminal.h"
#include "transport/messages/viewer.h"

namespace monarch {

// `columns`: as Table takes them.
std::string status_text(const JobStatus& status, bool colour, std::size_t columns = 0);

// Green, yellow or red by what a phase means.
Colour phase_colour(std::string_view phase);

}  // namespace monarch
