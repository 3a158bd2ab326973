#pragma once

// Whose package `monarch` the python3 of PATH imports: ours, none, or that of PyTorch Monarch, which has the same name.
//
// Thread: the main thread of its process, and the only one (it runs python3).

#include "supervisor/doctor/finding.h"

namespace monarch::doctor {

Findings check_python();

}  // namespace monarch::doctor
