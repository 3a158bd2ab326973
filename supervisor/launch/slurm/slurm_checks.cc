#include "supervisor/launch/launcher_checks.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

using doctor::Findings;
using doctor::Health;

// By what monarch speaks to Slurm, and to which of its jobs. The nodes themselves are not asked.
Findings check_commands(const std::optional<Allocation>& allocation, const doctor::Variables& environment) {
  const std::string check = "launch.slurm";
  const auto path = environment.find("PATH");
  Findings findings;
  for (const char* program : {"sbatch", "srun", "squeue", "scancel", "sinfo", "scontrol"}) {
    const auto found = doctor::find_program(program, "/", path == environment.end() ? "/usr/bin:/bin" : path->second);
    if (found.ok()) continue;
    findings.push_back({.check = check,
                        .health = Health::kFailed,
                        .found = found.error().message,
                        .means = "no node is asked for, no worker gets onto one, or none is ended",
                        .fix = "install Slurm's commands (Debian: slurm-client), or add their folder to PATH"});
  }
  if (findings.empty())
    findings.push_back({.check = check, .found = "sbatch, srun, squeue, scancel, sinfo and scontrol are in PATH"});
  if (allocation) {
    findings.push_back(
        {.check = check, .found = text("job ", allocation->job, " has ", counted(allocation->nodes.size(), "node"))});
  } else {
    findings.push_back({.check = check, .found = "this shell is in no allocation: sbatch is asked for one"});
  }
  return findings;
}

}  // namespace

std::vector<doctor::Check> slurm_checks(const JobSpec& spec, const doctor::Variables& environment) {
  return {{.name = "launch.slurm", .run = [allocation = spec.launch.facts().allocation, environment] {
             return check_commands(allocation, environment);
           }}};
}

}  // namespace monarch
