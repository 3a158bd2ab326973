#pragma once

// LogFileReader: a rank's output by its offset in the stream, from the file that the host's log writer fills. Where the
// file was rotated, `NAME.1` holds what came before, and `NAME.start` says where `NAME` begins:
//
//   no such file     at offset 0
//   "1000"           at 1000, and NAME.1 ends there
//   "0 1000"         a rotation is under way: NAME, if it is there and not empty, still begins at 0 and NAME.1 ends
//                    there; else NAME.1 ends at 1000
//
// The writer may be at work meanwhile: what is read is what it had written.
//
// Thread: the viewer's; it waits for the disk.

#include <cstdint>
#include <string>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class LogFileReader {
 public:
  // kNotFound if there is no such file.
  static Result<LogFileReader> open(const std::string& path);

  // The offsets that are there: [first, end).
  std::uint64_t first() const { return older_.file.valid() ? older_.begin : newer_.begin; }
  std::uint64_t end() const { return newer_.begin + newer_.size; }

  // Bytes from `offset` on, which lies in [first, end): at least one and at most `size`; empty if the disk fails.
  std::string read(std::uint64_t offset, std::size_t size) const;

 private:
  struct Part {
    UniqueFd file;
    std::uint64_t begin = 0;  // offset of its first byte
    std::uint64_t size = 0;
    std::uint64_t inode = 0;
  };
  LogFileReader() = default;
  static Part open_part(const std::string& path);
  static std::string read_start(const std::string& path);
  Status place(const std::string& start);

  Part newer_;
  Part older_;
};

}  // namespace monarch
