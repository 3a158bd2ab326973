#include "supervisor/journal/core_records.h"

#include "supervisor/journal/core_fields.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"
#include "transport/wire/codec.h"

namespace monarch {

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
