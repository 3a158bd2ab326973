#pragma once

// remove_tree(): takes away a folder with all that is in it, by descriptors: no link is followed, nothing outside is
// touched, and another file system that is mounted in it is refused. What stands in the way is named.
//
// Thread: any; it waits for the disk.

#include <cstdint>
#include <string>

#include "supervisor/journal/secure_directory.h"
#include "transport/base/result.h"

namespace monarch {

struct TreeSize {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  // as allocated on the disk
};

// Counts what is there. kNotFound if there is no such folder.
Result<TreeSize> measure_tree(const SecureDirectory& parent, const std::string& name);
Result<TreeSize> remove_tree(const SecureDirectory& parent, const std::string& name);

}  // namespace monarch
