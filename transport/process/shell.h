#pragma once

// Shells: a rank is often `bash -c "… && python train.py"`. What its shell waits for is then the rank as much as the
// shell is.
//
// Thread: any. Reads /proc only.

#include <sys/types.h>

#include <vector>

#include "transport/process/process_scan.h"

namespace monarch {

// The live children of a process that runs a shell, and of those of them that are shells; nothing where it runs none or
// waits for nobody.
std::vector<ProcessEntry> awaited_by_shell(pid_t pid);

}  // namespace monarch
