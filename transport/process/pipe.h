#pragma once

// make_pipe(): a pipe of which a child is to get one end; both close on exec.
//
// Thread: any.

#include <cstdint>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

struct Pipe {
  UniqueFd reader;
  UniqueFd writer;
};

enum class PipeReader : std::uint8_t { kWaits, kDoesNotWait };
Result<Pipe> make_pipe(PipeReader reader);

// Nobody can write into it any more, and all that was written has been read.
bool has_ended(int reader);

}  // namespace monarch
