#pragma once

// The planted bugs. Each is a rule that the simulated drivers, or what they feed the cores with, break on purpose; a
// simulator that does not notice proves nothing.
//
// Thread: constants.

#include <array>
#include <cstdint>
#include <optional>

#include "tests/sim/theme.h"

namespace monarch::sim {

enum class Mutant : std::uint8_t {
  kNone,
  kActBeforeDurable,
  kResendBeforeDurable,
  kVerdictBeforeDurable,
  kForgetBeforeDurable,
  kStaleSnapshot,
  kLeaseFromReceipt,
  kAckAnything,
  kIgnoreLeaseEnd,
  kStartOpensGate,
  kObeyLowerTerms,
  kPromiseNotKept,
  kNeverResend,
  kLaunchTwice,
  kSleepThroughStall,
  kBlameOurSignal,
  kTreeAlwaysEmpty,
  kForgetWorkers,
  kIgnoreDependencies,
  kSidecarDecides,
  kReadyAtOnce,
  kJoinUnheard,
  kNoLeaseWait,
  kRestartForEver,
  kOpenResource,
  kAckAnyGeneration,
  kBelieveAnybody,
  kNeverJudge,
  kCommitAnyGeneration,
  kCommitBeforeDurable,
  kNoBrake,
  kRecordAll,
  kTakeOverOpensGate,
  kForkBesideStandby,
  kAtGateAtOnce,
  kStandbyIsReady,
  kForgetHolds,
  kBlindToDebuggers,
  kNoStacks,
  kNeverHung,
  kSleepPastDue,
  kWakeUnaware,
  kBelieveAnyTerm,
  kBelieveAnyGeneration,
  kDrillExplainsNothing,
  kDrillExplainsAll,
  kForgetUncopied,
  kLoseStep,
  kGrantSuperseded,
  kCountEarlier,
  kClaimHalfGranted,
  kClaimLost,
  kSlotGivenTwice,
  kClaimDecides,
  kClaimBeforeDurable,
  kClaimImpatient,
  kClaimKept,
  kClaimStartsBare,
};

struct MutantName {
  Mutant mutant;
  const char* name;
  const char* label = nullptr;      // the invariant that must catch it; nullptr: any
  std::optional<Theme> theme = {};  // of all seeds, where what must come together is rare in others
};

inline constexpr std::array kMutants = {
    MutantName{Mutant::kActBeforeDurable, "act-before-durable"},
    MutantName{Mutant::kResendBeforeDurable, "resend-before-durable"},
    MutantName{Mutant::kVerdictBeforeDurable, "verdict-before-durable"},
    MutantName{Mutant::kForgetBeforeDurable, "forget-before-durable"},
    MutantName{Mutant::kStaleSnapshot, "stale-snapshot"},
    MutantName{Mutant::kLeaseFromReceipt, "lease-from-receipt"},
    MutantName{Mutant::kAckAnything, "ack-anything"},
    MutantName{Mutant::kIgnoreLeaseEnd, "ignore-lease-end"},
    MutantName{Mutant::kStartOpensGate, "start-opens-gate"},
    MutantName{Mutant::kObeyLowerTerms, "obey-lower-terms"},
    MutantName{Mutant::kPromiseNotKept, "promise-not-kept"},
    MutantName{Mutant::kNeverResend, "never-resend"},
    MutantName{Mutant::kLaunchTwice, "launch-twice"},
    MutantName{Mutant::kSleepThroughStall, "sleep-through-stall"},
    MutantName{Mutant::kBlameOurSignal, "blame-our-signal"},
    MutantName{Mutant::kTreeAlwaysEmpty, "tree-always-empty"},
    MutantName{Mutant::kForgetWorkers, "forget-workers"},
    MutantName{Mutant::kIgnoreDependencies, "ignore-dependencies", "order"},
    MutantName{Mutant::kSidecarDecides, "sidecar-decides", "sidecar"},
    MutantName{Mutant::kReadyAtOnce, "ready-at-once", "ready"},
    MutantName{Mutant::kJoinUnheard, "join-unheard", "slots"},
    MutantName{Mutant::kNoLeaseWait, "no-lease-wait"},
    MutantName{Mutant::kRestartForEver, "restart-for-ever", "I10"},
    MutantName{Mutant::kOpenResource, "open-resource", "I2"},
    MutantName{Mutant::kAckAnyGeneration, "ack-any-generation"},
    MutantName{Mutant::kBelieveAnybody, "believe-anybody", "I23"},
    MutantName{Mutant::kNeverJudge, "never-judge", "I12"},
    MutantName{Mutant::kCommitAnyGeneration, "commit-any-generation", "I20"},
    MutantName{Mutant::kCommitBeforeDurable, "commit-before-durable", "J1"},
    MutantName{Mutant::kNoBrake, "no-brake", "I14"},
    MutantName{Mutant::kRecordAll, "record-all", "I22"},
    MutantName{Mutant::kTakeOverOpensGate, "take-over-opens-gate", "I1"},
    MutantName{Mutant::kForkBesideStandby, "fork-beside-standby", "I18"},
    MutantName{Mutant::kAtGateAtOnce, "at-gate-at-once", "standby"},
    MutantName{Mutant::kStandbyIsReady, "standby-is-ready", "ready"},
    MutantName{Mutant::kForgetHolds, "forget-holds", "hang"},
    MutantName{Mutant::kBlindToDebuggers, "blind-to-debuggers", "hang"},
    MutantName{Mutant::kNoStacks, "no-stacks", "hang"},
    MutantName{Mutant::kNeverHung, "never-hung", "hang"},
    MutantName{Mutant::kSleepPastDue, "sleep-past-due", "due"},
    MutantName{Mutant::kWakeUnaware, "wake-unaware", "pause"},
    MutantName{Mutant::kBelieveAnyTerm, "believe-any-term", "term"},
    MutantName{Mutant::kBelieveAnyGeneration, "believe-any-generation", "I23"},
    MutantName{Mutant::kDrillExplainsNothing, "drill-explains-nothing", "drill", Theme::kDrills},
    MutantName{Mutant::kDrillExplainsAll, "drill-explains-all", "drill", Theme::kDrills},
    MutantName{Mutant::kForgetUncopied, "forget-uncopied", "copy"},
    MutantName{Mutant::kLoseStep, "lose-step", "step"},
    MutantName{Mutant::kGrantSuperseded, "grant-superseded"},
    MutantName{Mutant::kCountEarlier, "count-earlier", "beat"},
    MutantName{Mutant::kClaimHalfGranted, "claim-half-granted", "claims", Theme::kClaims},
    MutantName{Mutant::kClaimLost, "claim-lost", "claims", Theme::kClaims},
    MutantName{Mutant::kSlotGivenTwice, "slot-given-twice", "claims", Theme::kClaims},
    MutantName{Mutant::kClaimDecides, "claim-decides", "sidecar", Theme::kClaims},
    MutantName{Mutant::kClaimBeforeDurable, "claim-before-durable", "claims", Theme::kClaims},
    MutantName{Mutant::kClaimImpatient, "claim-impatient", "claims", Theme::kClaims},
    MutantName{Mutant::kClaimKept, "claim-kept", "claims", Theme::kClaims},
    MutantName{Mutant::kClaimStartsBare, "claim-starts-bare", "claims", Theme::kClaims},
};

}  // namespace monarch::sim
