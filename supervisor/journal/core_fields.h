#pragma once

// How the core's events and its state are written into a journal: as msgpack arrays of their fields, in this order.
// With any change here, or to a type that one of these holds, raise kRecordVersion and kLayoutVersion;
// tests/supervisor/journal/format_test.cc insists.
//
// Thread: values.

#include "supervisor/core/state/events.h"
#include "supervisor/core/state/job_state.h"
#include "transport/wire/codec.h"

namespace monarch {

MONARCH_FIELDS(GangCheckpoint, step, generation, what);
MONARCH_FIELDS(InheritedGang, mesh, gang, generation, furthest, checkpoint, first);
MONARCH_FIELDS(GangsInherited, gangs);
MONARCH_FIELDS(JobBegun, term, job, boot_id, continues, lost);
MONARCH_FIELDS(SupervisorReturned, term, boot_id, last_seen, away);
MONARCH_FIELDS(WorkerLaunched, host, worker);
MONARCH_FIELDS(WorkerLaunchFailed, host, failure);
MONARCH_FIELDS(WorkerJoined, host, incarnation);
MONARCH_FIELDS(WorkerEnded, host, how, orderly);
MONARCH_FIELDS(WorkerFailing, host);
MONARCH_FIELDS(DaemonStarted, host, start);
MONARCH_FIELDS(HostNamed, host, name, how);
MONARCH_FIELDS(HostSilent, host, silence, grants_until);
MONARCH_FIELDS(HostDistrusted, host, why, grants_until);
MONARCH_FIELDS(HostDoubted, host, heard_again, silence);
MONARCH_FIELDS(IdleNoted, left);
MONARCH_FIELDS(PortsReserved, host, reserved);
MONARCH_FIELDS(RankChanged, host, report, ended_at, uncertainty, step, grants_until, evidence_at, step_at);
MONARCH_FIELDS(GangProgressed, mesh, gang, generation, step, at);
MONARCH_FIELDS(GangStep, mesh, gang, generation, step);
MONARCH_FIELDS(StepsHeard, gangs);
MONARCH_FIELDS(GangPaused, mesh, gang, generation, from, to);
MONARCH_FIELDS(RankHung, host, process, why, phase, waited, limit, action, stacks);
MONARCH_FIELDS(HostsHeld, silent, of, until);
MONARCH_FIELDS(OperatorAsked, wish, ranks, hosts, who);
MONARCH_FIELDS(CheckpointCommitted, host, process, commit);
MONARCH_FIELDS(PeopleTold, event);
MONARCH_FIELDS(HoldAsked, wish, ranks, who);
MONARCH_FIELDS(StopOrdered, request);
MONARCH_FIELDS(EndForeseen, kind, why, by);
MONARCH_FIELDS(StoodStill, gap);
MONARCH_FIELDS(DrillNoted, what, drill, name, text, number, fault, host, rank, lasts, forgiven, lease, who);

MONARCH_FIELDS(ClaimHolder, host, owner);
MONARCH_FIELDS(SlotClaim, id, holder, number, mesh, ranks, what);
MONARCH_FIELDS(ClaimState, next, claims, slots);
MONARCH_FIELDS(SlotsClaimed, claim);
MONARCH_FIELDS(SlotsLetGo, claims, why);

// A type without fields.
inline void codec_write(codec::Writer& writer, const DeadlinePassed&) { codec::write(writer, false); }
inline bool codec_read(codec::Reader& reader, DeadlinePassed&) {
  bool unused = false;
  return codec::read(reader, unused);
}

MONARCH_FIELDS(HostState, phase, public_key, keeper_pid, incarnation, daemon_starts, inventory, address, log_directory,
               launched_at, answered_at, times, control_endpoint, bulk_endpoint, call_back_again, failure, wedged,
               shutdown_told, failing, doubted, launch_again, lost_because, deadline, late_before, standing, unproven,
               wanted, losses, cold_at, fence, suspicions, lost_at, name);
MONARCH_FIELDS(HostWords, owed, until);
MONARCH_FIELDS(Suspicion, rank, at);
MONARCH_FIELDS(Preparation, reached, began, ended_because);
MONARCH_FIELDS(RankState, end, ended_at, ending, ready, reaped, stdout_bytes, stderr_bytes, step, suspended);
MONARCH_FIELDS(EndedRank, process, host, pid, end, ended_at, uncertainty, evidence_at);
MONARCH_FIELDS(HostPorts, held, ports);
MONARCH_FIELDS(RankCommit, step, what);
MONARCH_FIELDS(GangCommits, newest, resumed, ahead_generation, ahead);
MONARCH_FIELDS(GangState, phase, was_ready, ends, cause_deadline, cause_decided, host_lost, lost_host, ever_ready,
               fenced_by, not_before, failure, failures, restarts, failed_at, out_of_memory, crash, progress_deadline,
               late_before, asked, hung, hung_because, furthest, reached, started_at, first_step, caught_up, time,
               commits);
MONARCH_FIELDS(Ledger, spent, bin, since);
MONARCH_FIELDS(PastPlace, first, hosts);
MONARCH_FIELDS(Crash, rank, step, count);
MONARCH_FIELDS(CrewMember, stage, pid, at_gate, output_complete);
MONARCH_FIELDS(Crew, phase, generation, hosts, ports, members, deadline, late_before, stop_signal, stop_grace, places);
MONARCH_FIELDS(StandbyState, failures, not_before, place);
MONARCH_FIELDS(MeshState, ranks, gangs);
MONARCH_FIELDS(GangReminder, since, at);
MONARCH_FIELDS(ReminderState, gangs, held_since, hold_at);
MONARCH_FIELDS(HeldRanks, held, by);
MONARCH_FIELDS(ForeseenEnd, kind, why, by, kill);
MONARCH_FIELDS(StruckGang, mesh, gang, failed);
MONARCH_FIELDS(OpenFault, number, host, forgiven, undone, until, gangs);
MONARCH_FIELDS(DrillWatch, drill, name, who, since, lease, until, stopped, stopped_by, open);
MONARCH_FIELDS(JobState, phase, job, term, hosts, slots, meshes, crews, last_words, preparations, standbys, verdict,
               kill_ordered, next_event, start_deadline, time_deadline, lifetime_deadline, lifetime_warning,
               drain_deadline, reallocations, returned_at, adopting, awaited, unheard, boot_id, holds, reminders,
               refusals, no_request_before, foreseen, foreseen_deadline, late, late_before, drill, claims);

}  // namespace monarch
