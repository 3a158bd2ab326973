#pragma once

// What a verdict needs from the files of a job: the last lines that the first cause wrote to its stderr, and what a
// Python program that uses torch's error handler left in its error file.
//
// Thread: the supervisor's loop, once, when the job has ended.

#include <cstdint>
#include <string>

#include "transport/messages/viewer.h"

namespace monarch {

// The end of what a rank wrote to its stderr and no file took, when its file ended at `at`.
struct UnkeptTail {
  std::uint64_t at = 0;
  std::string bytes;
};

// `log_directory` holds <mesh>/<rank>.<generation>.{err,error.json}. What is not there is left out. `unkept` is put in
// its place in a stderr of `written` bytes in all; 0: not known, it is the last.
void add_last_words(const std::string& log_directory, const UnkeptTail& unkept, std::uint64_t written,
                    FirstCause& cause);

// The last `lines` lines of `text`, whole if it has fewer.
std::string last_lines(std::string_view text, std::size_t lines);

}  // namespace monarch
