#pragma once

// rank_file(): the bytes of monarch-rank, which lies in monarch-worker: hosts get one file of ours.
//
// Thread: a constant.

#include <string_view>

namespace monarch {

std::string_view rank_file();

}  // namespace monarch
