#pragma once

// Blame: which blow explains which event, and which events of blame nobody explains.
//
// Thread: a pure function.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/drill/core/faults.h"
#include "supervisor/drill/core/measure_ledger.h"
#include "supervisor/drill/core/measure_run.h"

namespace monarch::drill {

// The story of a gang after a blow.
struct GangStory {
  std::optional<WallTime> failed;   // for the first time
  std::optional<WallTime> started;  // again
  std::optional<WallTime> running;
  std::optional<WallTime> recovered;  // past where it was; or ready, where its program had named no step
  std::uint32_t failures = 0;
  bool named_steps = false;
  std::uint64_t furthest = 0;  // step, as its start said
  bool by_samples = false;     // the supervisor did not know how far it was
  bool struck_again = false;   // before it had recovered: what follows is the later blow's
};

struct BlowStory {
  const Fault* fault = nullptr;  // nothing: its name is not known
  bool explains = false;         // it was in effect, or may have been
  std::optional<WallTime> seen;
  EventKind seen_by = {};
  bool host_hurt = false;  // suspected or lost, and not heard or ready again
  std::string remedy;
  std::map<std::uint32_t, GangStory> gangs;  // those of which an event was explained
  std::vector<const JobEvent*> events;
};

struct Blame {
  std::vector<BlowStory> stories;            // as the record's blows
  std::vector<const JobEvent*> unexplained;  // events of blame, since control began
  std::vector<const JobEvent*> own;          // hosts that are doubted for what the drill did to them
  std::uint32_t blamed = 0;                  // events of blame, since control began
  std::uint32_t explained = 0;
};

Blame explain(const Run& run, const TimeSheet& sheet);

}  // namespace monarch::drill
