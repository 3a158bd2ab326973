#pragma once

// The faults that can be injected on a host, by name, and the strike that each asks `monarch-worker check` for there.
// Ids are those of the table in tests/FAULTS.md.
//
// Thread: values.

#include <span>
#include <string_view>

#include "transport/messages/strike.h"

namespace monarch::drill {

struct Fault {
  std::string_view name;
  std::string_view id;
  StrikeWhat what = StrikeWhat::kKill;
  StrikeWhom whom = StrikeWhom::kHost;
  StrikeWay way = StrikeWay::kBoth;
  bool lasts = false;  // it is in effect for a time, and is taken back; else what it does is done
};

std::span<const Fault> faults();
// Nothing: there is none of that name.
const Fault* find_fault(std::string_view name);

}  // namespace monarch::drill
