#pragma once

// Judgement: what a report of a rank is to the job, from the host that it came from. Answered by JobCore::judge, from
// what is decided so far.
//
// Thread: a value.

#include <cstdint>

namespace monarch {

enum class ReportOf : std::uint8_t {
  kStranger,    // nothing that this host was given, as far as is remembered (I23)
  kSuperseded,  // a generation that ran there and that another has followed; nothing of it is awaited
  kOwed,        // likewise, and the rest of what it wrote is awaited
  kOfNow,       // the generation that the journal has on that host
};

struct Judgement {
  ReportOf of = ReportOf::kStranger;
  // It may run there, as far as the journal says: leases are granted for these alone.
  bool granted = false;

  // Others change nothing.
  bool counts() const { return of == ReportOf::kOwed || of == ReportOf::kOfNow; }
};

}  // namespace monarch
