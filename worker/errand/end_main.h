#pragma once

// end_main(): `monarch-worker end`: ends all of one job on this host, whoever of its worker still lives, and takes its
// sockets and state away. The logs stay. It may be run again at any time; who destroys a worker on another host runs it
// there, and its answer is the proof that nothing is left.
//
// Thread: main. It waits for the ends of processes.

#include <string>
#include <vector>

namespace monarch {

// `remove_state` takes away what a daemon keeps in a state directory. One line is printed: "ended <n>", where n
// processes had to be killed, or "still <pids>". The exit code: 0, 1 for the latter.
int end_main(const std::vector<std::string>& arguments, void (*remove_state)(const std::string& directory));

}  // namespace monarch
