#pragma once

// What a verdict needs from the files of a job: the last lines that the first cause wrote to its stderr, and what a Python program
// that uses torch's error handler left in its error file.
//
// Thread: the supervisor's loop, once, when the job has ended.

#include <string>

#include "transport/base/viewer_messages.h"

namespace monarch {

// `log_directory` holds <mesh>/<rank>.<generation>.{err,error.json}. What is not there is left out. `unkept`: what the rank wrote to its
// stderr last and no file took.
void add_last_words(const std::string& log_directory, const std::string& unkept, FirstCause& cause);

// The last `lines` lines of `text`, whole if it has fewer.
std::string last_lines(std::string_view text, std::size_t lines);

}  // namespace monarch
