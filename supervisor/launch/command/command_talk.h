#pragma once

// command_talk(): how the command of a host is talked over: a shell there, which becomes the script of remote_script.h.
//
// Thread: pure.

#include <memory>

#include "supervisor/launch/command/command_spec.h"
#include "supervisor/launch/talk/program_talk.h"
#include "transport/base/ids.h"

namespace monarch {

// Without a log.
ProgramTalkOptions command_talk(const LaunchCommand& spec, HostId host, std::shared_ptr<const WorkerImage> image);

}  // namespace monarch
