#pragma once

// Recovery: what is done about a gang that failed, by its cause first and its budgets second. One decision from facts,
// in the words that people read: the rule that fired, how much of which budget is spent, and what comes next.
//
//   exec error, failed setup, fatal exit code    fail; an exec error for what its host has run out of is as anything
//                                                else
//   second death by lack of memory               fail, unless progress came between
//   third crash in a row at the same step        fail
//   host lost, wedged, quarantined or drained    its slots move to other hosts, within `reallocate`; else park by
//                                                `shrink`; else wait for a host that is due to be launched
//                                                again; else fail
//   anything else                                the next generation on the same hosts, within `restart`; else fail
//
// Thread: a pure function.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "supervisor/core/spec/job_spec.h"
#include "transport/base/time.h"
#include "transport/messages/rank.h"

namespace monarch {

enum class FailureKind : std::uint8_t {
  kRank,        // a rank's own end
  kHung,        // a rank made no progress, and was killed for it
  kRanksEnded,  // their worker ended them: it had no lease
  kHostLost,    // and what it held with it; or it is wedged
};

struct FailureFacts {
  FailureKind kind = FailureKind::kRank;
  RankEnd end = {};            // kRank: the first cause's
  std::uint32_t failures = 0;  // earlier ones that still count against `restart`
  std::uint64_t seed = 0;      // of the back-off's jitter
  bool out_of_memory_before = false;
  bool unmade = false;                // a process of actors that has ended by itself before it was ever ready
  std::uint32_t crashes_at_step = 0;  // in a row, with this one; 0: its program names no steps
  std::uint64_t step = 0;
  // kHostLost
  std::uint32_t slots_out = 0;      // of the gang: their hosts do not serve
  std::uint32_t hosts_left = 0;     // that could take a slot
  std::uint32_t reallocations = 0;  // that still count against `reallocate`
  std::uint32_t hosts_due = 0;      // more, that may be launched again later
  Duration due_in;                  // when enough of them are
  bool may_park = false;            // `shrink` allows it
  std::string out = "host lost";    // what is the matter with the first of them
};

enum class Remedy : std::uint8_t {
  kRestart,
  kReplace,
  kPark,
  kAwait,  // nobody can replace it now, and somebody will
  kFail,
};

struct Recovery {
  Remedy remedy = Remedy::kFail;
  Duration wait;                    // kRestart: before it
  std::string rule;                 // "restart 2 of 4 in 10m, after 500ms; then: restart 3"
  std::uint32_t number = 0;         // which restart or replacement of those that count it is; 0: it is none
  std::optional<std::uint32_t> of;  // how many there may be; nothing: any number
};

std::string_view name_of(Remedy remedy);

Recovery recover(const Supervision& policy, const FailureFacts& facts);

}  // namespace monarch
