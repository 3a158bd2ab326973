#pragma once

// The daemon as a process: started by a keeper, with the channel to it as descriptor 3.
//
// Thread: the main one.

#include <functional>
#include <string>

#include "transport/base/result.h"

namespace monarch {

// Takes the workspace away that lies in a state directory.
using TreeRemover = std::function<Status(const std::string& state_directory)>;

// The process's exit code.
int daemon_main(const TreeRemover& remove_trees);

}  // namespace monarch
