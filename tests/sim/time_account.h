#pragma once

// TimeAccount: that the ledger of each gang adds up: what passes for it is in one of its bins, nothing twice and
// nothing in none.
//
// Thread: one simulation's. Lifetime: its checker's.

#include <cstdint>
#include <map>
#include <utility>

#include "supervisor/core/state/job_state.h"
#include "tests/sim/violation.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"

namespace monarch::sim {

class TimeAccount {
 public:
  // The core's state after any event.
  void after_event(const JobState& state) {
    for (std::uint32_t m = 0; m < state_parts::meshes(state); ++m) {
      const std::vector<GangState>& gangs = state_parts::gangs(state, MeshId(m));
      for (std::size_t g = 0; g < gangs.size(); ++g) look_at(gangs[g], {m, g});
    }
  }
  // By another clock, or after what was not durable: what was known says nothing.
  void forget() { known_.clear(); }

 private:
  struct Known {
    Duration spent;
    Instant since;
    bool counts = false;
  };

  void look_at(const GangState& gang, const std::pair<std::size_t, std::size_t>& key) {
    Duration spent;
    for (const Duration one : gang.time.spent) {
      must(one >= Duration(), "ledger", text("gang ", key.second, " of mesh ", key.first, " has less than none"));
      spent = spent + one;
    }
    const auto before = known_.find(key);
    if (before != known_.end() && before->second.counts) {
      must(gang.time.since - before->second.since == spent - before->second.spent, "ledger",
           text("of ", to_text(gang.time.since - before->second.since), " of gang ", key.second, " of mesh ", key.first,
                ", ", to_text(spent - before->second.spent), " are in a bin"));
    }
    known_[key] = {spent, gang.time.since, gang.time.bin.has_value()};
  }

  std::map<std::pair<std::size_t, std::size_t>, Known> known_;
};

}  // namespace monarch::sim
