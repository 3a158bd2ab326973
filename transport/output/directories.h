#pragma once

// Directories of ours, which only their owner may enter.
//
// Thread: any; it waits for the disk.

#include <string>

#include "transport/base/result.h"

namespace monarch {

// Makes what is missing of an absolute path, each 0700. What is there stays as it is.
Status make_directories(const std::string& path);

}  // namespace monarch
