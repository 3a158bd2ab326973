#pragma once

// The bytes of what ranks need of ours, which lies in monarch-worker: hosts get one file of ours.
//
// Thread: constants.

#include <string_view>

namespace monarch::embedded {

std::string_view rank_program();  // monarch-rank
std::string_view rank_library();  // libmonarch-rank.so
// All of worker/python: of each module its path, a blank, its size and a newline, then its bytes.
std::string_view python_modules();

}  // namespace monarch::embedded
