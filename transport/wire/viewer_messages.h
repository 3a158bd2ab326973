#pragma once

// How the messages of base/viewer_messages.h are written: as msgpack arrays of their fields, in this order. A new field goes last.
//
// Thread: values.

#include <monarch/codec.hpp>

#include "transport/base/viewer_messages.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"

namespace monarch {

MONARCH_FIELDS(JobEvent, number, time, severity, type, host, mesh, rank, generation, pid, message, details);
MONARCH_FIELDS(FirstCause, kind, host, mesh, rank, gang, gang_rank, generation, pid, end, summary, rule, stderr_tail,
               secondary);
MONARCH_FIELDS(HostFailure, host, kind, phase, elapsed_milliseconds, message, again);
MONARCH_FIELDS(Verdict, outcome, exit_code, cause, reason, started, ended, left_behind, failed_hosts,
               failed_hosts_untold, lost_output);
MONARCH_FIELDS(RankStatus, rank, phase, host, generation, pid, end, ready, progress, progress_age_milliseconds,
               standstill, watched);
MONARCH_FIELDS(GangStatus, phase, generation, restarts, failures);
MONARCH_FIELDS(RestartBudget, max, window_milliseconds);
MONARCH_FIELDS(CommittedStatus, gang, step, generation);
MONARCH_FIELDS(StandbyStatus, phase, hosts);
MONARCH_FIELDS(MeshStatus, name, dims, phase, ranks, sidecar, gangs, restart, committed, standby);
MONARCH_FIELDS(HostStatus, name, phase, role, keeper_pid, daemon_starts, silent_milliseconds, round_trip_microseconds,
               talk_drops, standing, standing_because, returns_milliseconds, held_milliseconds, preparation, pressure,
               shortage);
MONARCH_FIELDS(JobStatus, job_id, phase, term, supervisor_pid, started, meshes, hosts, counters, verdict);
MONARCH_FIELDS(Attach, output, events, after_event, viewer);
MONARCH_FIELDS(StatusRequest, unused);
MONARCH_FIELDS(StopRequest, how, interrupted, exit_code, who);
MONARCH_FIELDS(SignalRequest, ranks, number, to);
MONARCH_FIELDS(OperatorRequest, wish, ranks, hosts, now, who);
MONARCH_FIELDS(HoldRequest, ranks, release, who);
MONARCH_FIELDS(ViewerOutput, stream, offset, bytes);
MONARCH_FIELDS(Accepted, message);
MONARCH_FIELDS(Refused, message);

}  // namespace monarch
