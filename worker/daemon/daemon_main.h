#pragma once

// The daemon as a process: started by a keeper, with the channel to it as descriptor 3.
//
// Thread: the main one.

namespace monarch {

// The process's exit code.
int daemon_main();

}  // namespace monarch
