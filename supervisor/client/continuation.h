#pragma once

// A job that goes on from one that has ended: the folder of each names the other,
//
//   continues.json of the new one, continued.json of the one before:   {"v":1,"job":"train-7c3e"}
//
// and the new one's supervisor reads what it has of that one out of its journal, once, as it begins.
//
// Thread: functions that touch the file system.

#include <optional>
#include <string>

#include "supervisor/client/new_job.h"
#include "supervisor/journal/state_dir.h"
#include "transport/base/result.h"

namespace monarch {

inline constexpr char kContinuesFile[] = "continues.json";
inline constexpr char kContinuedFile[] = "continued.json";

// The job that this one goes on from, and the one that goes on from this one. Nothing: there is none, or its folder cannot be read.
std::optional<std::string> continues_from(const SecureDirectory& job);
std::optional<std::string> continued_as(const SecureDirectory& job);

// That `next` goes on from `job`: first the new one says so, whose supervisor goes by that.
Status link_continuation(const JobDirectory& job, const JobDirectory& next);

// A job of the same name, files and script, which goes on from `job`, and is not started. `slurm_job`: Slurm's number of it, 0 while that is
// being found out.
Result<JobDirectory> make_continuation(const StateDir& state, const JobDirectory& job, std::uint32_t slurm_job);

}  // namespace monarch
