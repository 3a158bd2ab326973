#pragma once

// WorkspaceProgress: how far each host is with the workspace that is being sent to it, in words for people now and
// then: not before it has taken a while, and then no more often than that, however many hosts there are.
//
// Thread: values; no clock.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "transport/base/time.h"

namespace monarch {

// Of one host.
struct WorkspaceSent {
  std::uint64_t bytes = 0;
  std::uint64_t of = 0;  // what it lacked; what it had is not counted
  bool over = false;     // it has all, or its talk has ended otherwise
  bool has_all = false;
};

class WorkspaceProgress {
 public:
  static constexpr Duration kEvery = Duration::seconds(10);
  static constexpr std::size_t kNamed = 4;  // those with the most to come

  // What is to be said now, if anything.
  std::optional<std::string> note(const std::string& host, const WorkspaceSent& sent, Instant now);

 private:
  std::string words() const;

  std::map<std::string, WorkspaceSent> under_way_;
  std::size_t have_all_ = 0;
  Instant said_ = Instant::never();  // or when it began
};

}  // namespace monarch
