#pragma once

// Finds and ends what a job left on this machine when nobody who owned it is left: processes of our uid that carry its mark (see
// marks.h and launcher_variables.h), and what descends from them. Names and numbers prove nothing; a uuid that was drawn for one job does.
//
// WARNING: a process that executed with an empty environment and lost its parents carries no mark; see containment.h.
//
// Thread: any. end_marked() blocks.

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/time.h"
#include "transport/process/process_scan.h"

namespace monarch {

// The uuid of the job that a live process of ours belongs to, in hexadecimal; nothing if it carries no mark.
std::optional<std::string> job_mark(pid_t pid);
// Also one that belongs to a job which was started by a rank of this one.
bool carries_mark(pid_t pid, const std::string& uuid);

// All live processes of ours that carry a mark, by uuid.
std::map<std::string, std::vector<ProcessEntry>> marked_processes();

// Those of one job with all that descends from them, but the caller.
std::vector<ProcessEntry> processes_of_job(const std::string& uuid);

struct EndedProcesses {
  std::size_t ended = 0;
  std::vector<pid_t> left;  // that KILL did not end in time
};
EndedProcesses end_marked(const std::string& uuid, Duration patience);

}  // namespace monarch
