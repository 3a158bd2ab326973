#pragma once

// A job that goes on from one that has ended: the folder of each names the other,
//
//   continues.json of the new one, continued.json of the one before:   {"v":1,"job":"train-7c3e"}
//
// and the new one's supervisor reads what it has of that one out of its journal, once, as it begins. The second is of a
// job that goes on by itself: who follows the one before follows on.
//
// Thread: functions that touch the file system.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/client/new_job.h"
#include "supervisor/journal/state_dir.h"
#include "transport/base/result.h"

namespace monarch {

inline constexpr char kContinuesFile[] = "continues.json";
inline constexpr char kContinuedFile[] = "continued.json";

// The job that this one goes on from. Nothing: there is none, or its folder cannot be read.
std::optional<std::string> continues_from(const SecureDirectory& job);
Status write_continues(const SecureDirectory& job, const std::string& from);

// The job that goes on from this one by itself, where the two agree on that, and it is none that this one goes on from.
std::optional<std::string> continued_as(const StateDir& state, const JobDirectory& job);

// Those that it goes on from, the nearest first.
std::vector<std::string> all_before(const StateDir& state, const JobDirectory& job);
// Of all that go on from it, the first that has not ended: it needs what this one left.
std::optional<std::string> needed_by(const StateDir& state, const JobDirectory& job);

// A job of the same name, files and script, which goes on from `job`, and is not started: in Slurm's queue once
// submit_continuation() has said so.
Result<JobDirectory> make_continuation(const StateDir& state, const JobDirectory& job);
// `slurm_job`: Slurm's number of it, 0 while that is being found out.
Status submit_continuation(const JobDirectory& next, std::uint32_t slurm_job);

}  // namespace monarch
