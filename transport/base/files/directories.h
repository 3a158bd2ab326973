#pragma once

// Directories of ours, which only their owner may enter.
//
// Thread: any; it waits for the disk.

#include <cstddef>
#include <string>

#include "transport/base/result.h"

namespace monarch {

// Makes what is missing of an absolute path, each 0700. What is there stays as it is. errno is left for whoever tells a
// full disk apart.
Status make_directories(const std::string& path);

// The same, and each of the last `levels` folders has to be ours, no link of somebody else's, and closed to the writing
// of others, before anything is made in it: nothing comes to lie in a folder of somebody else's. kInvalid names the one
// that is not.
Status make_own_directories(const std::string& path, std::size_t levels);

}  // namespace monarch
