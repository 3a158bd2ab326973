#pragma once

// PauseWatch: pauses between the steps of a gang: longer than a second and than five of its usual steps. A pause is
// told once its end is known, which is the gang's next step; that of a gang that fails instead is found by its failure.
// Between two beats a gang may do many steps: they count as usual ones, and what is left over is the pause.
//
// Thread: a value of the supervisor's loop. It is not journalled: of a pause over which the supervisor ended nobody
// knows.

#include <map>
#include <optional>
#include <utility>

#include "supervisor/core/state/events.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"

namespace monarch {

inline constexpr Duration kShortestPause = Duration::seconds(1);
inline constexpr int kPauseOfSteps = 5;

class PauseWatch {
 public:
  // A rank of this gang has named `step` by then, on our clock.
  std::optional<GangPaused> heard(MeshId mesh, GangId gang, Generation generation, std::uint64_t step, Instant at);

 private:
  struct Known {
    Generation generation;
    std::uint64_t step = 0;
    Instant at;
    std::optional<Duration> usual;  // a step
  };
  std::map<std::pair<MeshId, GangId>, Known> gangs_;
};

}  // namespace monarch
