#pragma once

// LineSource: who wrote a line, as its prefix may say; RankSet: numbers as a person reads them, "0-7,9".
//
// Thread: values.

#include <cstdint>
#include <set>
#include <string>

#include "transport/base/time.h"
#include "transport/messages/output.h"

namespace monarch {

struct LineSource {
  std::string job;
  std::string mesh;
  std::uint32_t rank = 0;
  std::uint64_t generation = 0;
  std::string host;
  OutputStream stream = OutputStream::kStdout;
  std::uint32_t gang = 0;
  std::uint32_t local_rank = 0;  // LOCAL_RANK: among the ranks of its gang on its host
  std::uint32_t mesh_ranks = 0;  // of the whole mesh; 0: not known
};

// When a line came: for a fold's window, and for {time}.
struct LineTime {
  Instant now;
  WallTime wall;
};

}  // namespace monarch
