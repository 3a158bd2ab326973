#pragma once

// The bytes of what ranks need of ours, which lies in monarch-worker: hosts get one file of ours.
//
// Thread: constants.

#include <string_view>

namespace monarch::embedded {

std::string_view rank_program();           // monarch-rank
std::string_view rank_library();           // libmonarch-rank.so
std::string_view rank_module();            // monarch_rank.py
std::string_view tensors_module();         // monarch_tensors.py
std::string_view tensors_memory_module();  // monarch_tensors_memory.py

}  // namespace monarch::embedded
