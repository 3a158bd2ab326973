#pragma once

// print(): all of what a process says to whoever runs `monarch-worker`. It tells nobody that they were not heard: a
// reader that has gone learns from the exit code, or its end of our input tells.
//
// Thread: any; it waits for the reader.

#include <string_view>

namespace monarch {

void print(int fd, std::string_view words);

}  // namespace monarch
