#pragma once

// Every command of `monarch`, each from the file of its name. main.cc lists them; the list is the order of --help.
//
// Thread: pure functions; what they return runs on the main thread.

#include "cli/args/command.h"

namespace monarch {

Command run_command();
Command up_command();
Command attach_command();
Command stop_command();
Command ps_command();
Command status_command();
Command wait_command();
Command logs_command();
Command events_command();
Command signal_command();
Command restart_command();
Command drain_command();
Command undrain_command();
Command retry_command();
Command stacks_command();
Command hold_command();
Command drill_command();
Command rm_command();
Command doctor_command();
Command completion_command();
// Hidden; `commands` are what it completes.
Command complete_command(std::vector<Command> (*commands)());
Command plan_command();
Command init_command();
Command validate_command();
Command explain_command();
Command python_command();
Command version_command();
Command supervise_command();
// Hidden.
Command over_ssh_command();
Command follow_command();
Command launch_for_command();
Command supervise_there_command();

}  // namespace monarch
