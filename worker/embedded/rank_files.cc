#include "worker/embedded/rank_files.h"

#include <cstddef>

// rank_files.py
extern "C" const char monarch_rank_program_begin[];
extern "C" const char monarch_rank_program_end[];
extern "C" const char monarch_rank_library_begin[];
extern "C" const char monarch_rank_library_end[];
extern "C" const char monarch_python_modules_begin[];
extern "C" const char monarch_python_modules_end[];

namespace monarch::embedded {

namespace {

std::string_view between(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }

}  // namespace

std::string_view rank_program() { return between(monarch_rank_program_begin, monarch_rank_program_end); }
std::string_view rank_library() { return between(monarch_rank_library_begin, monarch_rank_library_end); }
std::string_view python_modules() { return between(monarch_python_modules_begin, monarch_python_modules_end); }

}  // namespace monarch::embedded
