#pragma once

// Finds and ends what a job left on this machine when nobody who owned it is left: processes of our uid that carry its
// mark (see marks.h and launcher_variables.h), and what descends from them. Names and numbers prove nothing; a uuid
// that was drawn for one job does.
//
// WARNING: a process that executed with an empty environment and lost its parents carries no mark; see containment.h.
//
// Thread: any. end_marked() blocks.

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/time.h"
#include "transport/process/process_scan.h"

namespace monarch {

// 32 digits of a hexadecimal number in small letters.
bool is_job_uuid(std::string_view word);

// A worker's keeper, daemon or vault hides its environment, and what makes its workspace has none of ours; the command
// line is their mark.
struct WorkerMark {
  std::string uuid;
  std::string host;
  bool keeper = false;
};
std::optional<WorkerMark> worker_mark(pid_t pid);
// The directory of the job that this process of ours decides about; nothing where it is no supervisor.
std::optional<std::string> supervisor_mark(pid_t pid);

// The uuid of the job that a live process of ours belongs to, in hexadecimal; nothing if it carries no mark.
std::optional<std::string> job_mark(pid_t pid);
// Also one that belongs to a job which was started by a rank of this one.
bool carries_mark(pid_t pid, const std::string& uuid);

// All live processes of ours that carry a mark, by uuid.
std::map<std::string, std::vector<ProcessEntry>> marked_processes();

// What is looked for: all of a job, or what is of one of its hosts, where several share a machine.
struct MarkedBy {
  std::string uuid;
  std::string host = {};  // empty: any
};

// Those of one job with all that descends from them, but the caller.
std::vector<ProcessEntry> processes_of_job(const MarkedBy& marks);

struct EndedProcesses {
  std::size_t ended = 0;
  std::vector<pid_t> left;  // that KILL did not end in time
};
// Keepers are stopped first and killed last: what loses its parents meanwhile comes to them, and is found however it is
// disguised.
EndedProcesses end_marked(const MarkedBy& marks, Duration patience);

}  // namespace monarch
