#pragma once

// OutputStart: from where on the output in the files is meant: since a time, the last lines, or both. Files are read
// from their end as far as it takes.
//
// Thread: values and functions that read files.

#include <cstdint>
#include <optional>

#include "supervisor/client/output/log_file_reader.h"
#include "supervisor/client/output/log_times_reader.h"
#include "transport/base/time.h"

namespace monarch {

struct OutputStart {
  std::optional<WallTime> since = {};
  std::optional<std::uint64_t> lines = {};  // of each rank's stream, over its generations
};

// The beginning of the line that holds the byte before `at`, if that is no end of a line; looked for within 64 KiB, and
// `at` if it is further.
std::uint64_t start_of_line(const LogFileReader& file, std::uint64_t at);

struct TailStart {
  std::uint64_t offset = 0;
  std::uint64_t lines = 0;  // from there on, an unfinished one counted
};
TailStart start_of_tail(const LogFileReader& file, std::uint64_t lines);

// The beginning of the line in which something may have been written after `since`.
std::uint64_t start_since(const LogFileReader& file, const LogTimesReader& times, WallTime since);

}  // namespace monarch
