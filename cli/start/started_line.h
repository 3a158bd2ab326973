#pragma once

// What `up` prints of a job once it is there: its id, or with --json an object in one line.
//
// Thread: the command's.

#include "cli/args/command.h"
#include "supervisor/client/job_view.h"
#include "supervisor/core/spec/job_spec.h"
#include "transport/base/json.h"
#include "transport/messages/viewer.h"

namespace monarch {

Json started_json(const JobStatus& status);

// `json`: the object, of what the supervisor, or the journal, says now; where nobody knows, of its id alone.
void write_started(const JobView& view, const JobSpec& spec, bool json, const Context& context);

}  // namespace monarch
