#pragma once

// PressureWatch: who is told that a host is short of something, from what its beats say. Nothing is stopped or moved
// for it: a host that is slow is not one that fails. It is said once of each thing, and again only after that was over
// for a while.
//
// Thread: its owner's.

#include <array>
#include <map>
#include <optional>
#include <string>

#include "transport/base/host_pressure.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/viewer.h"

namespace monarch {

// "short of memory (63 % of the time)", and of processors and of what its disks can do; empty: of nothing that is worth
// a word.
std::string shortage_of(const HostPressure& pressure);

class PressureWatch {
 public:
  // An event host.pressure, or nothing.
  std::optional<JobEvent> note(HostId host, const std::string& name, const HostPressure& pressure, Instant now);

 private:
  // When it was short last of memory, disks and processors, if that is told.
  std::map<HostId, std::array<std::optional<Instant>, 3>> told_;
};

}  // namespace monarch
