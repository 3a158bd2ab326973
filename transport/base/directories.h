#pragma once

// Directories of ours, which only their owner may enter.
//
// Thread: any; it waits for the disk.

#include <cstddef>
#include <string>

#include "transport/base/result.h"

namespace monarch {

// Makes what is missing of an absolute path, each 0700. What is there stays as it is.
Status make_directories(const std::string& path);

// Whether each of the last `levels` folders of an absolute path is ours, no link, and closed to the writing of others. kInvalid names
// the one that is not.
Status check_directories(const std::string& path, std::size_t levels);

}  // namespace monarch
