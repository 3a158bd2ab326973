#include "supervisor/journal/core_records.h"

#include <tuple>

#include "transport/base/limits.h"
#include "transport/base/text.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/viewer_messages.h"

namespace monarch {

MONARCH_FIELDS(JobBegun, term, job);
MONARCH_FIELDS(SupervisorReturned, term);
MONARCH_FIELDS(WorkerLaunched, host, reply, control_endpoint, again);
MONARCH_FIELDS(LaunchFailure, kind, phase, elapsed, message, words, again);
MONARCH_FIELDS(WorkerLaunchFailed, host, failure);
MONARCH_FIELDS(WorkerJoined, host, incarnation);
MONARCH_FIELDS(WorkerEnded, host, how, orderly);
MONARCH_FIELDS(HostSilent, host, silence);
MONARCH_FIELDS(HostDoubted, host, heard_again, silence);
MONARCH_FIELDS(IdleNoted, left);
MONARCH_FIELDS(PortsReserved, host, reserved);
MONARCH_FIELDS(RankChanged, host, report, ended_at, uncertainty);
MONARCH_FIELDS(StopOrdered, request);

// A type without fields.
inline void codec_write(codec::Writer& writer, const DeadlinePassed&) { codec::write(writer, false); }
inline bool codec_read(codec::Reader& reader, DeadlinePassed&) {
  bool unused = false;
  return codec::read(reader, unused);
}

MONARCH_FIELDS(HostState, phase, public_key, keeper_pid, incarnation, inventory, address, log_directory, launched_at,
               control_endpoint, call_back_again, failure, wedged, shutdown_told, lost_because, deadline);
MONARCH_FIELDS(RankState, stage, pid, end, ended_at, ready, reaped, output_complete, stdout_bytes, stderr_bytes);
MONARCH_FIELDS(EndedRank, rank, host, generation, pid, end, ended_at, uncertainty);
MONARCH_FIELDS(HostPorts, held, ports);
MONARCH_FIELDS(GangState, phase, generation, ports, was_ready, ends, cause_deadline, cause_decided, host_lost,
               lost_host, stop_deadline, stop_grace, stop_signal);
MONARCH_FIELDS(MeshState, ranks, gangs);
MONARCH_FIELDS(JobState, phase, job, term, hosts, slots, meshes, verdict, kill_ordered, next_event, last_counter,
               start_deadline, time_deadline, lifetime_deadline, lifetime_warning, drain_deadline);

std::string encode_core_event(const CoreEvent& event) { return encode_payload(event); }

Result<CoreEvent> decode_core_event(std::string_view payload) {
  return decode_payload<CoreEvent>(payload, limits::kJournalPayloadBytes);
}

std::string encode_job_event(const JobEvent& event) { return encode_payload(event); }

Result<JobEvent> decode_job_event(std::string_view payload) {
  return decode_payload<JobEvent>(payload, limits::kJournalPayloadBytes);
}

std::string encode_job_state(const JobState& state) { return encode_payload(state); }

Result<JobState> decode_job_state(std::string_view bytes) {
  return decode_payload<JobState>(bytes, limits::kSnapshotBytes);
}

namespace {

bool is_of(const JobState& state, const JobCore& core) {
  const std::size_t hosts = core.hosts().size();
  if (state.hosts.size() != hosts || state.meshes.size() != core.spec().meshes.size()) return false;
  if (state.slots.size() != core.placement().slots().size()) return false;
  std::vector<bool> taken(hosts, false);
  for (const HostId host : state.slots) {
    if (host.value() >= hosts || taken[host.value()]) return false;
    taken[host.value()] = true;
  }
  return true;
}

}  // namespace

Status replay(const JournalContents& contents, JobCore& core) {
  if (contents.snapshot) {
    MONARCH_ASSIGN(JobState state, decode_job_state(contents.snapshot->bytes));
    if (!is_of(state, core)) {
      return Error{ErrorCode::kInvalid, "the snapshot of the journal is of another spec"};
    }
    core.restore(std::move(state));
  }
  for (const Record& record : contents.records) {
    if (record.type != RecordType::kInput) continue;
    Result<CoreEvent> event = decode_core_event(record.payload);
    if (!event.ok()) {
      return Error{ErrorCode::kInvalid, text("journal record ", record.lsn, ": ", event.error().message)};
    }
    (void)core.step(*event, record.now);
  }
  return {};
}

}  // namespace monarch
