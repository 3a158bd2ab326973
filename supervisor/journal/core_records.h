#pragma once

// What a job's core was told and has said, as the payloads of journal records: kInput carries a CoreEvent, kEvent a
// JobEvent, a snapshot the JobState. A core that is fed the same records is in the same state (I6).
//
// Thread: pure functions.

#include <cstdint>
#include <string>
#include <string_view>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/state/events.h"
#include "supervisor/journal/journal_contents.h"
#include "transport/base/result.h"

namespace monarch {

std::string encode_core_event(const CoreEvent& event);
Result<CoreEvent> decode_core_event(std::string_view payload);

std::string encode_job_event(const JobEvent& event);
Result<JobEvent> decode_job_event(std::string_view payload);

std::string encode_job_state(const JobState& state);
Result<JobState> decode_job_state(std::string_view bytes);

// Feeds a new core with what the journal holds. kInvalid: a record that this build cannot read, by LSN; or a snapshot
// of another spec. Actions are dropped: what they asked for was done, or the beats will show that it was not.
Status replay(const JournalContents& contents, JobCore& core);

}  // namespace monarch
