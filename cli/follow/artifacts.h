#pragma once

// Artifacts: files that a job leaves for a CI system: spec.yaml, verdict.json, events.jsonl, supervisor.log and logs/,
// as they are in its folder. Regular files alone are copied.
//
// Thread: the command's; it waits for the disk.

#include "cli/follow/report_places.h"
#include "supervisor/client/job_view.h"
#include "transport/base/result.h"

namespace monarch {

// The first thing that could not be copied is said, and the rest is copied.
Status copy_artifacts(const JobView& job, const Verdict& verdict, const ArtifactFolder& to);

}  // namespace monarch
