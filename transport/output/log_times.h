#pragma once

// LogTimes: when a stream's bytes were written, in `NAME.times` beside its file: lines of
//
//   OFFSET FIRST LAST
//
// What was written from OFFSET on, up to the next line's, was written between these two times (milliseconds since the
// epoch, LAST not included). There is a line for each second in which something was written; a file that has grown too
// large is written anew with every two lines made one. A reader of `logs --since` needs it; that it cannot be written
// costs no output.
//
// Thread: the log thread's.

#include <cstdint>
#include <string>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class LogTimes {
 public:
  static constexpr std::int64_t kSpanMilliseconds = 1000;
  static constexpr std::uint64_t kMostBytes = 1U << 20U;

  // `path` is that of the stream's file.
  explicit LogTimes(const std::string& path) : path_(path + ".times") {}

  // Bytes are about to be written at `offset`.
  void note(std::uint64_t offset, WallTime now);

 private:
  Status append(std::uint64_t offset, std::int64_t milliseconds);
  Status thin(const UniqueFd& folder) const;

  std::string path_;
  std::int64_t last_ = 0;  // FIRST of the last line
  bool failed_ = false;    // said once
};

}  // namespace monarch
