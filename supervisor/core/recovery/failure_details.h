#pragma once

// failure_details(): what a gang.failed says, for programs: what the first cause was, what is done about it, and how
// much of which budget that takes.
//
//   cause   rank, hung, host        of the first
//   end     how its process ended   of a rank
//   remedy  restart, replace, park, wait, fail
//   number  which restart or replacement it is, of those that count; left out where it is none
//   of      how many there may be; left out where there may be any number
//   wait_ms before a restart
//   rule    the words in brackets
//
// Thread: a pure function.

#include "supervisor/core/recovery/recovery.h"
#include "transport/messages/viewer.h"

namespace monarch {

// `hung`: the first cause is that a rank made no progress.
EventDetails failure_details(GangId gang, const FirstCause& cause, bool hung, const Recovery& next);

}  // namespace monarch
