#pragma once

// look_at_workspace(): whether the workspace of a spec is one on this machine, and how much it is. Of virtual hosts,
// which use it where it lies, only that it is there.
//
// Thread: the command's; it waits for the disk.

#include <optional>
#include <string>
#include <vector>

#include "cli/term/terminal.h"
#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/spec.h"
#include "supervisor/workspace/scan.h"

namespace monarch {

struct WorkspaceLook {
  std::vector<Diagnostic> faults;           // with places in the sources
  std::optional<ScannedWorkspace> scanned;  // of what is copied to hosts
  std::vector<std::string> notes;           // what cannot be copied
};

WorkspaceLook look_at_workspace(const JobSpec& spec, const YamlNode& tree, const std::vector<SpecText>& sources);

// Shows what is wrong, and what is left out; false: it cannot be used.
bool has_its_workspace(const WorkspaceLook& look, const std::vector<SpecText>& sources, const Terminal& terminal);

// A line for people; empty where there is none.
std::string workspace_line(const JobSpec& spec, const std::optional<ScannedWorkspace>& scanned);

}  // namespace monarch
