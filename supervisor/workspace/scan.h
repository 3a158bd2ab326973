#pragma once

// scan_workspace(): which files of a folder are its workspace: all but what its rules leave out. What cannot be sent (a
// socket, a link that leads out) is left out by name. Nothing is read but the files of rules.
//
// Thread: any that may wait for the disk.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "transport/base/files/tree_manifest.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

// A file is executable in a tree if one of these bits is set.
inline constexpr mode_t kMayExecute = 0111;

struct ScannedWorkspace {
  TreeManifest tree;  // without hashes
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> left_out;  // "run.sock: is a socket"; not what the rules leave out
};

// kNotFound: there is no such folder. kBusy: it is too large, and what is largest is named. kInvalid: it cannot be
// read.
Result<ScannedWorkspace> scan_workspace(const WorkspaceSpec& workspace);

// The same of a folder that is open. Errors of both name `workspace.path`.
Result<ScannedWorkspace> scan_workspace(int folder, const WorkspaceSpec& workspace);
Result<UniqueFd> open_workspace(const WorkspaceSpec& workspace);

}  // namespace monarch
