#pragma once

// LogTimesReader: when the bytes of a stream were written, from `NAME.times`, which the host's log writer keeps beside
// `NAME`: lines of OFFSET FIRST LAST (milliseconds since the epoch). What was written from OFFSET on, up to the next
// line's, was written from FIRST on and before LAST.
//
// Thread: a value; read() waits for the disk.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/time.h"

namespace monarch {

class LogTimesReader {
 public:
  // Of the stream in this file; empty if its times are not kept. Lines that are none are passed over.
  static LogTimesReader read(const std::string& path);
  static LogTimesReader parse(const std::string& content);

  bool empty() const { return spans_.empty(); }
  // From there on something may have been written after `time`; nothing: nothing was.
  std::optional<std::uint64_t> first_after(WallTime time) const;
  // About when the byte there was written.
  std::optional<WallTime> time_at(std::uint64_t offset) const;
  // The offset after this one at which a later time begins; the largest number if none does.
  std::uint64_t next_after(std::uint64_t offset) const;
  // What is there or behind may have been written after these times were read.
  std::uint64_t known_until() const { return spans_.empty() ? 0 : spans_.back().offset; }

 private:
  struct Span {
    std::uint64_t offset = 0;
    std::int64_t first = 0;
    std::int64_t last = 0;
  };
  std::vector<Span> spans_;
};

}  // namespace monarch
