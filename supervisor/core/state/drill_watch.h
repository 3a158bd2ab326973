#pragma once

// DrillWatch: the drill that has the job, and which of its faults are open: what they bring about explains failures of
// the gangs and the loss of the host that they strike, so that the drill's own blows speak against nobody.
//
// A fault explains the failures of a gang from its notice until the gang is past where it was; where that has not
// failed, until the fault's time is over and some time for its consequences has passed. Of a host it explains one loss.
//
// Thread: values and pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/time.h"

namespace monarch {

// Beside the time after which a host is lost: what a fault did may take so long to be told of.
inline constexpr Duration kDrillEcho = Duration::seconds(30);

struct StruckGang {
  MeshId mesh;
  GangId gang;
  bool failed = false;  // it did, and is not past where it was
};

struct OpenFault {
  std::uint32_t number = 0;    // 0: of a drill before this one
  std::optional<HostId> host;  // that may be lost by it, and has not been
  bool forgiven = false;       // what it explains is no evidence
  bool undone = false;         // it was told to be
  Instant until;               // what has not failed by then fails of something else
  std::vector<StruckGang> gangs;
};

struct DrillWatch {
  std::string drill;  // its id; empty: none has the job
  std::string name;
  std::string who;
  Instant since;
  Duration lease;
  Instant until = Instant::never();  // it counts as ended then
  std::string stopped;               // the id of the one that was stopped last
  std::string stopped_by;
  std::vector<OpenFault> open;  // in the order of their notices, those of an earlier drill included
};

inline bool is_stopped(const DrillWatch& watch) { return !watch.drill.empty() && watch.stopped == watch.drill; }

// Numbers of its faults that are not taken back, and of which a gang is not past where it was or may still fail.
std::vector<std::uint32_t> open_numbers(const DrillWatch& watch, Instant now);
// The newest that explains a failure of that gang now; nothing: none does.
const OpenFault* explains_failure(const DrillWatch& watch, MeshId mesh, GangId gang, Instant now);
// The newest that explains that this host is lost now.
const OpenFault* explains_loss(const DrillWatch& watch, HostId host, Instant now);

// The gang has failed, or the host is lost, and that is explained.
void note_failed(DrillWatch& watch, MeshId mesh, GangId gang, Instant now);
void note_lost(DrillWatch& watch, HostId host, Instant now);
// The gang is past where it was, or will never be.
void note_recovered(DrillWatch& watch, MeshId mesh, GangId gang);
// Without those that explain nothing any more.
void forget_over(DrillWatch& watch, Instant now);

}  // namespace monarch
