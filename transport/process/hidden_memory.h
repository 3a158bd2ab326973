#pragma once

// Keeps what this process knows from others of its user: the job's keys, and values that a spec takes from the
// submitting shell. What a program executes is free of it again (execve(2)), so ranks stay as open as their user made
// them.
//
// Thread: any, before the process knows a secret.

namespace monarch {

// No dump of core, and none of what lies in /proc/PID but its number, state and arguments for anybody but root.
// WARNING: from here on a file of /proc/self that is written belongs to root.
void hide_memory();

// No memory of ours in a dump of core, wherever it goes. Children inherit it: only for a process that starts no ranks.
void refuse_core_dumps();

}  // namespace monarch
