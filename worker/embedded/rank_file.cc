#include "worker/embedded/rank_file.h"

#include <cstddef>

// rank_file.py
extern "C" const char monarch_rank_file_begin[];
extern "C" const char monarch_rank_file_end[];

namespace monarch {

std::string_view rank_file() {
  return {monarch_rank_file_begin, static_cast<std::size_t>(monarch_rank_file_end - monarch_rank_file_begin)};
}

}  // namespace monarch
