#pragma once

// The bugs that are planted on purpose, each the breach of a rule by which groups go: the checks have to catch every
// one.
//
// Thread: constants.

#include <array>
#include <cstdint>

namespace monarch::sim::groups {

enum class Bug : std::uint8_t {
  kNone,
  kOldSelfStays,      // a member that comes back is not in the place of its earlier process
  kEndNotTold,        // the first keeps to itself that an epoch has ended
  kVerdictOnAny,      // verdicts are looked at without generations
  kEpochsAnew,        // each process of the first counts epochs from 1
  kCallEndsNothing,   // a call leaves the epoch that runs as it is
  kGivesUpInPlace,    // a call that gives up keeps its place
  kNoNumbers,         // calls have no numbers
  kVerdictForgotten,  // a verdict that comes before the answer is lost
  kNoTicks,           // who has found no link does not try again
  kDeafToLink,        // the end of the link to the first says nothing
};

struct BugName {
  Bug bug;
  const char* name;
};

inline constexpr std::array kBugs = {
    BugName{Bug::kOldSelfStays, "old-self-stays"},
    BugName{Bug::kEndNotTold, "end-not-told"},
    BugName{Bug::kVerdictOnAny, "verdict-on-any"},
    BugName{Bug::kEpochsAnew, "epochs-anew"},
    BugName{Bug::kCallEndsNothing, "call-ends-nothing"},
    BugName{Bug::kGivesUpInPlace, "gives-up-in-place"},
    BugName{Bug::kNoNumbers, "no-numbers"},
    BugName{Bug::kVerdictForgotten, "verdict-forgotten"},
    BugName{Bug::kNoTicks, "no-ticks"},
    BugName{Bug::kDeafToLink, "deaf-to-link"},
};

}  // namespace monarch::sim::groups
