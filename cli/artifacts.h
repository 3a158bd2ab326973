#pragma once

// Artifacts: files that a job leaves for a CI system: spec.yaml, verdict.json, events.jsonl, supervisor.log and logs/, as they are in its
// folder; and any one report file. Regular files alone are copied, and none is written through a link that was there.
//
// Thread: the command's; it waits for the disk.

#include <string>

#include "supervisor/client/job_view.h"
#include "transport/base/result.h"

namespace monarch {

// Whether write_report_file() could write there now.
Status check_report_file(const std::string& path);
// All of it or nothing: a file that is there is replaced.
Status write_report_file(const std::string& path, const std::string& content);

// Makes the folder and those above it; kInvalid if something is in it.
Status make_artifacts_directory(const std::string& path);
// The first thing that could not be copied is said, and the rest is copied.
Status copy_artifacts(const JobView& job, const Verdict& verdict, const std::string& directory);

}  // namespace monarch
