#pragma once

// Pipes to and from a program that another process starts for us, and where it may log.
//
// Thread: pure but for the descriptors; nothing waits.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

enum class PipeEnd : std::uint8_t { kRead, kWrite };

struct ProgramPipe {
  UniqueFd ours;  // does not block
  UniqueFd theirs;
};

// `ours`: which end we keep.
Result<ProgramPipe> make_program_pipe(PipeEnd ours);

// Appends what can be read now, a mebibyte of it at most, until `into` has `limit` bytes; what is beyond is read and
// dropped. True: nothing more will come.
bool read_available(int fd, std::string& into, std::size_t limit);

// A file that grows, mode 0600. A fifo that was planted in its place holds nobody.
Result<UniqueFd> open_program_log(const std::string& path);

// Of what a command said, for people.
std::string_view last_line(std::string_view words);

}  // namespace monarch
