#pragma once

// The two ways to be a keeper.
//
// Thread: the process's first, before any other exists.

#include <string>
#include <vector>

#include "worker/keeper/rank_files.h"

namespace monarch {

// `monarch-worker`: reads a frame with a Bootstrap on standard input, and keeps a daemon and the ranks of one host.
// Where it cannot even start, the frame on standard output says why; otherwise the daemon writes that frame.
int keeper_main(const RankFileBytes& rank_files);

// `monarch-worker keep [--ready-fd N] [--restarts N] [--window SECONDS] -- COMMAND…`: keeps COMMAND alive.
int guard_main(const std::vector<std::string>& arguments);

}  // namespace monarch
