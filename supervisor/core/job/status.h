#pragma once

// JobStatus from a job's core: what `status` and `ps` show, from a live supervisor or from a journal alone. What only a
// live supervisor knows (pids, silences, counters of the control plane) is left for it to fill in.
//
// Thread: values.

#include <string>

#include "supervisor/core/job/job_core.h"
#include "transport/messages/viewer.h"

namespace monarch {

// `now` is what times to come are counted from: of a journal alone, its last record's.
JobStatus status_of(const JobCore& core, const std::string& job_id, Instant now);

}  // namespace monarch
