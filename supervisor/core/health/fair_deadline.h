#pragma once

// FairDeadline: until when somebody else has to have answered, not counting time in which we were late ourselves and
// could neither ask nor hear. Its owner looks at it at least as often as it says; where a beat more than that has gone
// by, this process stood still or its machine had too much to do, and that time is given back.
//
// Thread: a value of whoever waits.

#include <string>

#include "supervisor/core/health/own_stall.h"
#include "transport/base/time.h"

namespace monarch {

// " (this machine was late by 7.3s meanwhile, which does not count)"; nothing where it was not.
std::string late_words(Duration late);

class FairDeadline {
 public:
  FairDeadline(Duration limit, Instant now);

  // Whether the time is up. This is the look that it asks for.
  bool over(Instant now);
  // When it is to be looked at again.
  Instant look_by(Instant now) const;
  // When the time is up, if nobody is late from now on.
  Instant until() const { return until_; }
  Duration late() const { return late_; }

 private:
  OwnStall stall_;
  Instant until_;
  Duration late_;
};

}  // namespace monarch
