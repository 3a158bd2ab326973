#pragma once

// ActorProgram: monarch-rank as a file of this host. It travels within monarch-worker; the first rank that is it has it
// written into the worker's folder.
//
// Thread: the keeper's. WARNING: a file that any process has open for writing is not executed (ETXTBSY, execve(2)), and
// a child has what was open when it was forked: it is written and closed before there is a child that could.

#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"

namespace monarch {

class ActorProgram {
 public:
  // `bytes` are the program's; both may be empty where no rank is one.
  ActorProgram(std::string folder, std::string_view bytes) : folder_(std::move(folder)), bytes_(bytes) {}

  // Puts the file, and where the workspace lies, into a program that names kActorProgram; all others stay as they are.
  Status put_into(std::vector<std::string>& program, const std::string& tree);

 private:
  Status write(const std::string& path) const;

  std::string folder_;
  std::string_view bytes_;
  bool written_ = false;
};

}  // namespace monarch
