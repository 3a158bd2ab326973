#pragma once

// Coverage: what of the rare things that the seeds are meant to bring about has happened in a run.
//
// Thread: values. Lifetime: the run's.

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "supervisor/core/state/actions.h"
#include "supervisor/core/state/events.h"
#include "supervisor/core/state/job_state.h"

namespace monarch::sim {

enum class Seen : std::uint8_t {
  kThirdCrash,
  kForgiven,
  kCopiedLate,
  kEvidence,
  kErrorFirst,
  kClaimed,
  kLetGo,
  kClaimsReturn,
};

struct SeenName {
  Seen seen;
  const char* name;
};

inline constexpr std::array kSeenNames = {
    SeenName{Seen::kThirdCrash, "third crash at one step"},
    SeenName{Seen::kForgiven, "progress that forgives"},
    SeenName{Seen::kCopiedLate, "output copied after the end was told"},
    SeenName{Seen::kEvidence, "an error written before an end"},
    SeenName{Seen::kErrorFirst, "a cause that was not the first to exit"},
    SeenName{Seen::kClaimed, "idle slots that were claimed"},
    SeenName{Seen::kLetGo, "claims that were let go"},
    SeenName{Seen::kClaimsReturn, "a supervisor that came back to claims"},
};

using SeenSet = std::bitset<kSeenNames.size()>;

class Coverage {
 public:
  void decided(const CoreEvent& event, const std::vector<Action>& actions);
  // Of a process whose end was told before.
  void copied_late() { note(Seen::kCopiedLate); }
  void returned(const JobState& state) {
    if (!state.claims.claims.empty()) note(Seen::kClaimsReturn);
  }
  SeenSet seen() const { return seen_; }

 private:
  void note(Seen what) { seen_.set(static_cast<std::size_t>(what)); }

  SeenSet seen_;
};

}  // namespace monarch::sim
