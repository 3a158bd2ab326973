#pragma once

// Programs: starts programs on this machine for whoever talks over them, each with three streams that are given to it,
// and tells their ends. A supervisor has them forked by its guard (guarded_programs.h); a process without threads forks
// them itself (forked_programs.h).
//
// Thread: the loop's of whoever has them. Lifetime: longer than that of whoever talks.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/messages/rank.h"

namespace monarch {

struct ProgramStreams {
  UniqueFd in;
  UniqueFd out;
  UniqueFd err;
};

class Programs {
 public:
  using Ticket = std::uint32_t;  // 0: none
  // How it ended; nothing: that is not known, and never will be.
  using OnEnd = std::function<void(const std::optional<RankEnd>& end)>;

  Programs() = default;
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;
  virtual ~Programs() = default;

  // By the loop, and not within this call, `on_end` is told its end, once.
  // `environment` is added to that of whoever forks.
  virtual Result<Ticket> start(std::vector<std::string> program, ProgramStreams streams, OnEnd on_end,
                               std::map<std::string, std::string> environment) = 0;
  // SIGKILL; its end is told.
  virtual void kill(Ticket ticket) = 0;
  // It lives on where whoever forked it ends before the job does.
  virtual void let_live(Ticket ticket) = 0;
  // Nobody wants to know its end any more; it lives on.
  virtual void disown(Ticket ticket) = 0;
};

}  // namespace monarch
