#pragma once

// A record in report.json: its fields, its events, and in columns what there is much of, commits and samples.
//
// Thread: pure functions.

#include <string>

#include "supervisor/drill/core/record.h"
#include "transport/base/json.h"
#include "transport/base/result.h"

namespace monarch::drill {

inline constexpr std::size_t kMostSamples = 200'000;
inline constexpr std::size_t kMostSampleValues = 4'000'000;
inline constexpr std::size_t kMostEvents = 400'000;
inline constexpr std::size_t kMostBlows = 20'000;
inline constexpr std::uint32_t kMostRanks = 1'000'000;  // of a mesh
inline constexpr std::size_t kMostMeshes = 1'000;
inline constexpr std::int64_t kMostTime = 4'000'000'000'000'000'000;    // in nanoseconds; a time of the wall clock
inline constexpr std::int64_t kMostDuration = 100'000'000'000'000'000;  // in nanoseconds; what is longer is for ever

Json record_fields_json(const DrillRecord& record);
Json events_json(const std::vector<JobEvent>& events);  // all but commits
// A commit that has all that a commit has, and nothing else.
bool is_in_columns(const JobEvent& event);
Json commits_json(const std::vector<JobEvent>& events);
Json samples_json(const std::vector<DrillSample>& samples);

// The way back; an error names the place.
Result<DrillRecord> read_record_fields(const Json& json);
Result<std::vector<JobEvent>> read_events(const Json& json);
// Adds them where their numbers belong.
Status read_commits(const Json& json, std::vector<JobEvent>& events);
Result<std::vector<DrillSample>> read_samples(const Json& json, std::size_t gangs);

}  // namespace monarch::drill
