#pragma once

// What this host has for ranks, for the answer to the launcher. GPUs that the environment's CUDA_VISIBLE_DEVICES leaves
// out do not count: they are somebody else's.
//
// Thread: any; touches the file system.

#include <string>

#include "transport/messages/bootstrap.h"

namespace monarch::daemon {

// `root` is put before /proc, /sys and /dev.
HostInventory read_inventory(const std::string& root = "");

}  // namespace monarch::daemon
