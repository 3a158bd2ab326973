#pragma once

// describe_end(): how a process has ended, in words.
//
// Thread: a pure function.

#include <cstring>
#include <string>
#include <system_error>

#include "transport/base/text.h"
#include "transport/messages/rank.h"

namespace monarch {

// "exit code 7", "killed by SIGSEGV (core dumped)", "could not be executed: exec /bin/nonesuch: No such file or
// directory"
inline std::string describe_end(const RankEnd& end) {
  switch (end.kind) {
    case EndKind::kNone: return "has not ended";
    case EndKind::kExited: return end.detail.empty() ? text("exit code ", end.value) : printable(end.detail);
    case EndKind::kSetupFailed: return text("setup failed with exit code ", end.value);
    case EndKind::kSignaled: {
      const char* const abbreviation = ::sigabbrev_np(end.value);
      return text("killed by ", abbreviation != nullptr ? text("SIG", abbreviation) : text("signal ", end.value),
                  end.out_of_memory ? " (out of memory)" : "", end.core_dumped ? " (core dumped)" : "");
    }
    case EndKind::kNotExecuted:
      return text("could not be executed: ", printable(end.detail), ": ", std::generic_category().message(end.value));
  }
  return "";
}

}  // namespace monarch
