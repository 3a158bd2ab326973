#pragma once

// TimeAxis: where a time of the drill stands in a picture. Its zero is the end of control, from which a scenario's
// times are counted.
//
// Thread: a value.

#include "supervisor/drill/core/record.h"
#include "supervisor/drill/page/svg.h"

namespace monarch::drill {

class TimeAxis {
 public:
  // From the begin of control until the last fault was recovered from, between these two places of the picture.
  TimeAxis(const DrillRecord& record, double left, double right);

  WallTime from() const { return from_; }
  WallTime zero() const { return zero_; }
  WallTime to() const { return to_; }
  double left() const { return left_; }
  double right() const { return right_; }
  // Times before or after are at the edge.
  double x(WallTime at) const;
  double seconds(WallTime at) const;  // from zero
  double width_of(double seconds) const;
  void draw_ticks(Svg& svg, double top, double bottom) const;

 private:
  WallTime from_;
  WallTime zero_;
  WallTime to_;
  double left_;
  double right_;
};

// When a blow struck, as far as it is known.
WallTime when_struck(const Blow& blow);
// Seconds between two times of the record.
double seconds_between(WallTime from, WallTime to);
// "12.3s", from the end of control.
std::string moment_words(const DrillRecord& record, WallTime at);

}  // namespace monarch::drill
