#pragma once

// Talks with a check over the standard input and output of a program of this machine: of an srun or a command, that
// carries them to a shell on a host, or of the check itself.
//
// Thread: the loop's.

#include <memory>
#include <string>

#include "supervisor/launch/reach/check_reach.h"
#include "supervisor/launch/talk/program_talk.h"
#include "supervisor/launch/talk/programs.h"

namespace monarch {

// `order` is for a check. What is referred to outlives the talk.
std::unique_ptr<HostTalk> program_check(EventLoop& loop, Programs& programs, RemoteOrder order,
                                        ProgramTalkOptions options, HostTalk::OnLost on_lost);

// On this machine, with that monarch-worker.
std::unique_ptr<HostTalk> check_here(EventLoop& loop, Programs& programs, const std::string& worker,
                                     HostTalk::OnLost on_lost);

}  // namespace monarch
