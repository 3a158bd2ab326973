#pragma once

// --tied: the descriptor whose other end a program holds, and closes by ending.
//
// Thread: the command's, before it opens anything.

#include <string>

#include "transport/base/result.h"

namespace monarch {

// As it was written; kInvalid: why it is not the reading end of a pipe, or a socket, that is open here. From here on no
// child inherits it unasked.
Result<int> tied_descriptor(const std::string& written);

}  // namespace monarch
