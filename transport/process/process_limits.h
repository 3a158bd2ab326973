#pragma once

// The limits that this process meets when it starts others, which an error of the system does not name.
//
// Thread: any.

#include <string>

#include "transport/process/spawn.h"

namespace monarch {

// With the limit that was met in its detail: "fork (100 processes of this user at most: ulimit -u)". Others stay as
// they are.
StepFailure with_limit(StepFailure failure);

Error fork_error(int errno_value);

}  // namespace monarch
