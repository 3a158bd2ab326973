#pragma once

// RankFiles: what ranks need of ours, as files of this host: monarch-rank, the library of tensors, and the Python
// modules. All of it travels within monarch-worker; the first rank that needs a file has it written into a folder
// of the worker's, which goes with it.
//
// Thread: the keeper's. WARNING: a file that any process has open for writing is not executed (ETXTBSY, execve(2)), and
// a child has what was open when it was forked: it is written and closed before there is a child that could.

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/base/result.h"
#include "worker/core/environment.h"

namespace monarch {

// The bytes of each; empty: this process has none.
struct RankFileBytes {
  std::string_view program;  // monarch-rank
  std::string_view library;  // libmonarch-rank.so
  std::string_view modules;  // of each its path, a blank, its size and a newline, then its bytes
};

class RankFiles {
 public:
  RankFiles() = default;
  RankFiles(const std::string& state_directory, const RankFileBytes& bytes);

  // Puts monarch-rank, and where the workspace lies, into a program that names kActorProgram; all others stay as they
  // are.
  Status put_program(std::vector<std::string>& program, const std::string& tree);
  // The library, for a rank of a job with `tensors`.
  Status put_library(RankDoorPaths& paths);
  // What Python imports, for a rank that calls or is called.
  Status put_modules(RankDoorPaths& paths);

 private:
  // Its path.
  Result<std::string> put(const std::string& name, std::string_view bytes);
  Status make_folders(const std::string& name) const;
  Status write(const std::string& path, std::string_view bytes) const;

  std::string folder_;
  RankFileBytes bytes_;
  std::set<std::string> written_;
};

}  // namespace monarch
