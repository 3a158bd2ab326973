#pragma once

// remove_tree(): a folder with all that lies in it, whoever of our user made it how. No link is followed.
//
// Thread: any; it waits for the disk.

#include <string>

#include "transport/base/result.h"

namespace monarch {

// Names what could not be removed; the rest has gone. What is not there has been removed already.
Status remove_tree(int folder, const std::string& name);

}  // namespace monarch
