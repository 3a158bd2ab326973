#pragma once

// remove_job(): takes away all that this machine keeps of a job that is over: first what still runs of it, by proof,
// then its cgroups, its sockets, its workers' state and its folder. A job that lives, or may live on another machine,
// is refused.
//
// It holds the job's lock meanwhile, so that no supervisor can come back. A folder is first renamed, so that one that
// could be removed in part only is no job any more; finish_removals() takes such rests away.
//
// Thread: the command's; it waits for the disk and for the ends of processes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/journal/remove_tree.h"
#include "supervisor/journal/state_dir.h"
#include "transport/base/result.h"
#include "transport/base/time.h"

namespace monarch {

struct JobRemains {
  std::size_t processes = 0;
  std::vector<std::string> sockets;
  std::size_t groups = 0;  // cgroups of its hosts, which keepers left that were killed
  TreeSize files;
};

// What there is of it; changes nothing. kBusy: it lives.
Result<JobRemains> remains_of(const StateDir& state, const std::string& id);

// What it removed. kBusy: it lives; kUnsupported: that it does not cannot be proven here; others: what stood in the
// way.
Result<JobRemains> remove_job(const StateDir& state, const std::string& id);

// The uuid by which its processes are marked, from its journal; nothing if that says none.
std::optional<std::string> uuid_of_job(const StateDir& state, const std::string& id);

// Folders of jobs that were being removed when somebody was interrupted. How many there were.
Result<std::size_t> finish_removals(const StateDir& state);

// When it ended, or where nothing says so when its journal was last written.
WallTime ended_at(const StateDir& state, const std::string& id);

}  // namespace monarch
