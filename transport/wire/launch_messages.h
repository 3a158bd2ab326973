#pragma once

// How the messages of base/launch_messages.h are written: as msgpack arrays of their fields, in this order. A new field goes last.
//
// Thread: values.

#include <monarch/codec.hpp>

#include "transport/base/launch_messages.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"

namespace monarch {

MONARCH_FIELDS(StartThere, version, job_id, spec, spec_directory, shell, needs_address);
MONARCH_FIELDS(StartedThere, exit_code, error, log_tail, directory, address);
MONARCH_FIELDS(LauncherHello, name);
MONARCH_FIELDS(LaunchTimes, waited, log_in, copy, start);
MONARCH_FIELDS(LaunchedWorker, reply, control_endpoint, bulk_endpoint, again, times);
MONARCH_FIELDS(LaunchFailure, kind, phase, elapsed, message, words, again);
MONARCH_FIELDS(HostLaunched, host, worker);
MONARCH_FIELDS(HostNotLaunched, host, failure);
MONARCH_FIELDS(HostEnded, host, how, orderly);
MONARCH_FIELDS(LauncherWelcome, unused);
MONARCH_FIELDS(LaunchHost, host, bootstrap);
MONARCH_FIELDS(EndHost, host);
MONARCH_FIELDS(HostSaidGoodbye, host, orderly);
MONARCH_FIELDS(LeaveLauncher, reason);

}  // namespace monarch
