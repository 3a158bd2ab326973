#pragma once

// Which lanes the timeline draws, and of which pieces: what is narrower than a piece that one can see is one with its
// neighbours, and neighbours of one colour are one.
//
// Thread: pure functions.

#include <string>
#include <string_view>
#include <vector>

#include "supervisor/drill/core/record.h"
#include "supervisor/drill/core/report.h"
#include "supervisor/drill/page/time_axis.h"

namespace monarch::drill {

inline constexpr std::size_t kMostLanes = 40;

struct LanePiece {
  double x = 0;
  double width = 0;
  Ink ink = Ink::kIdle;
  std::string title;  // empty: none is asked for
};
std::vector<LanePiece> pieces_of(const Lane& lane, const TimeAxis& axis, bool titles);
// The supervisor's own work is no rank's.
Ink ink_of(const Lane& lane, const LaneSpan& span);

struct LaneChoice {
  std::vector<const Lane*> drawn;     // as in the report
  std::vector<std::string> quiet;     // hosts where nothing but work was
  std::vector<std::string> left_out;  // others that there is no room for
};
LaneChoice chosen_lanes(const DrillRecord& record, const DrillReport& report);

// "v3, v4 and 24 others"
std::string some_names(const std::vector<std::string>& names, std::size_t most);

}  // namespace monarch::drill
