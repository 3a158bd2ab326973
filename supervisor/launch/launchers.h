#pragma once

// The launchers that there are: one line for each, whose parts stand in its folder.
//
// Thread: constant data.

#define MONARCH_LAUNCHERS(X) X(local) X(ssh) X(slurm) X(command)

namespace monarch {

struct LauncherSpec;

// NAME_spec(): of the spec (supervisor/spec/schema/launcher_spec.h).
#define MONARCH_DECLARE_LAUNCHER(name) const LauncherSpec& name##_spec();
MONARCH_LAUNCHERS(MONARCH_DECLARE_LAUNCHER)
#undef MONARCH_DECLARE_LAUNCHER

}  // namespace monarch
