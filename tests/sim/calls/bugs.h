#pragma once

// The bugs that are planted on purpose, each the breach of a rule by which posts, their drivers or ranks go: the
// checks have to catch every one.
//
// Thread: constants.

#include <array>
#include <cstdint>

namespace monarch::sim::calls {

enum class Bug : std::uint8_t {
  kNone,
  kSilentConnection,      // a post is not told that a connection stands, so it says no hello
  kLostResync,            // that numbers are missing is not heard, where one got lost
  kAsksOfPredecessor,     // a post takes what was meant for an earlier start of it
  kAnswersOfPredecessor,  // a post hears what was said to an earlier start of it
  kAnyEpoch,              // a hello that comes late counts as new
  kOtherIsTheSame,        // a root takes the next start of a post for the one before it
  kNothingSaidAgain,      // answers that were lost with a connection stay lost
  kRosterBackwards,       // an older roster counts as newer
  kSuccessorRuns,         // what a process of a rank was given its successor runs
  kGivenTwice,            // a rank is given what it has been given
  kUnnamedCause,          // the cause of a rank's end is not told
  kStaleCaller,           // a caller whose rank has a later process is heard
  kDoorLeftUnseen,        // a rank's end is seen neither at its door nor told by its keeper
  kHostNeverLost,         // a lost host stays in the roster
  kNoTicks,               // time does not pass for a post
  kDroppedBodiesStay,     // of messages that waited behind a body that does not come the bodies are kept
  kForgedCaller,          // whom a host names as the caller of an ask is believed
  kNoShares,              // who comes first may have all of a rank's queue
  kFreedThoughKept,       // a rank says that it is done with arguments that its user has kept
  kFreedAtTheFirst,       // a block of two readers is free once the first has let it go
  kUnsureUntold,          // nothing is said of a block one of whose readers has died
  kWrittenAfterALoss,     // what was lent by a connection that has ended is written again
  kLastLostWithACut,      // that a call is over is not heard where a packet of answers has no room for more
  kLastTooEarly,          // an answer says that it is the last of its call, and another one follows
  kNumberGivenTwice,      // a guest has the number of one that has left
  kHereOfAnother,         // what comes from another machine is said to be of this one
};

struct BugName {
  Bug bug;
  const char* name;
};

inline constexpr std::array kBugs = {
    BugName{Bug::kSilentConnection, "silent-connection"},
    BugName{Bug::kLostResync, "lost-resync"},
    BugName{Bug::kAsksOfPredecessor, "asks-of-predecessor"},
    BugName{Bug::kAnswersOfPredecessor, "answers-of-predecessor"},
    BugName{Bug::kAnyEpoch, "any-epoch"},
    BugName{Bug::kOtherIsTheSame, "other-is-the-same"},
    BugName{Bug::kNothingSaidAgain, "nothing-said-again"},
    BugName{Bug::kRosterBackwards, "roster-backwards"},
    BugName{Bug::kSuccessorRuns, "successor-runs"},
    BugName{Bug::kGivenTwice, "given-twice"},
    BugName{Bug::kUnnamedCause, "unnamed-cause"},
    BugName{Bug::kStaleCaller, "stale-caller"},
    BugName{Bug::kDoorLeftUnseen, "door-left-unseen"},
    BugName{Bug::kHostNeverLost, "host-never-lost"},
    BugName{Bug::kNoTicks, "no-ticks"},
    BugName{Bug::kDroppedBodiesStay, "dropped-bodies-stay"},
    BugName{Bug::kForgedCaller, "forged-caller"},
    BugName{Bug::kNoShares, "no-shares"},
    BugName{Bug::kFreedThoughKept, "freed-though-kept"},
    BugName{Bug::kFreedAtTheFirst, "freed-at-the-first"},
    BugName{Bug::kUnsureUntold, "unsure-untold"},
    BugName{Bug::kWrittenAfterALoss, "written-after-a-loss"},
    BugName{Bug::kLastLostWithACut, "last-lost-with-a-cut"},
    BugName{Bug::kLastTooEarly, "last-too-early"},
    BugName{Bug::kNumberGivenTwice, "number-given-twice"},
    BugName{Bug::kHereOfAnother, "here-of-another"},
};

}  // namespace monarch::sim::calls
