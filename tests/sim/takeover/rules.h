#pragma once

// The rules by which two supervisors of one job may take over from each other, with the agents of the hosts as
// acceptors: what they say to each other, their constants, and the wrong variants that the simulation has to notice.
// Users are not offered this.
//
// An epoch is the number of a supervisor's incarnation; no two supervisors ever use the same one.
//
// Thread: values.

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

#include "transport/base/time.h"

namespace monarch::sim::takeover {

using Epoch = std::uint64_t;
using Agent = std::uint32_t;

struct Gen {
  Epoch epoch = 0;
  std::uint64_t counter = 0;
  auto operator<=>(const Gen&) const = default;
};

constexpr Duration kBeat = Duration::seconds(1);
constexpr Duration kLease = Duration::seconds(6);      // L
constexpr Duration kFresh = Duration::seconds(3);      // M: how long a majority's word stands; less than L
constexpr Duration kLostAfter = Duration::seconds(4);  // of silence
constexpr Duration kMargin = Duration::milliseconds(500);

// As long by every clock that is wrong by less than a thousandth.
constexpr Duration by_any_clock(Duration d) { return d + d / 1000; }

// What an agent has of one rank.
struct Held {
  std::uint32_t rank = 0;
  Gen gen;
  Epoch granted_by = 0;  // the epoch of its last lease; 0: it never had one, and waits at its gate
  Instant until;         // of that lease, on the agent's clock
};

// From a supervisor. `stamp` is its own time of sending.
struct Prepare {
  Epoch epoch = 0;
  Instant stamp;
};
struct Grant {
  std::uint32_t rank = 0;
  Gen gen;
};
struct Ack {
  Epoch epoch = 0;
  std::uint64_t boot = 0;
  std::uint64_t seq = 0;
  Instant stamp;
  std::vector<Grant> grants;
};
struct Start {
  Epoch epoch = 0;
  std::uint64_t boot = 0;  // of the agent that is meant: what is started does not survive it
  std::uint32_t rank = 0;
  Gen gen;
};
struct Kill {
  Epoch epoch = 0;
  std::uint32_t rank = 0;
  Gen gen;
};

// From an agent, to the supervisor that it has promised to obey: a beat, and with it the promise.
struct Report {
  Epoch promised = 0;
  std::uint64_t boot = 0;
  std::uint64_t seq = 0;
  Instant echo;  // the latest stamp of that supervisor
  std::vector<Held> held;
  std::vector<Grant> started;  // the highest of each rank in this boot: what of it is not held has ended
};
// To one that it has not: `promised` is higher.
struct Refusal {
  Epoch promised = 0;
};

// The planted bugs.
enum class Wrong : std::uint8_t {
  kNothing,
  kFreshByReceipt,    // Q1: when a beat came, not when what it echoes was sent
  kGrantAlone,        // Q2: grants and decides without a fresh majority
  kAdoptNeverLeased,  // Q3: what waits at its gate lives on under a new supervisor
  kRenewAtOnce,       // Q4: before T_p + M
  kWaitLeaseAlone,    // Q5: T_p + L
  kObeyAnyEpoch,      // Q6
  kPromiseLost,       // Q7: with a reboot of the host
  kLazyAgent,         // does not look at its clock
  kTrustAnyDeath,     // of what this supervisor only knows from hearsay
  kStartLeases,       // START carries a lease
  kLeaseFromReceipt,  // a lease counts from the receipt of its ACK
  kFirstDraft,        // receipt, at once and lazy together
};

struct WrongName {
  Wrong wrong;
  const char* name;
  std::uint64_t seeds;  // within which it is caught
};

inline constexpr std::array kWrongs = {
    WrongName{Wrong::kFreshByReceipt, "fresh-by-receipt", 500},
    WrongName{Wrong::kGrantAlone, "grant-alone", 500},
    WrongName{Wrong::kAdoptNeverLeased, "adopt-never-leased", 5'000},
    WrongName{Wrong::kRenewAtOnce, "renew-at-once", 5'000},
    WrongName{Wrong::kWaitLeaseAlone, "wait-lease-alone", 500},
    WrongName{Wrong::kObeyAnyEpoch, "obey-any-epoch", 5'000},
    WrongName{Wrong::kPromiseLost, "promise-lost", 5'000},
    WrongName{Wrong::kLazyAgent, "lazy-agent", 500},
    WrongName{Wrong::kTrustAnyDeath, "trust-any-death", 5'000},
    WrongName{Wrong::kStartLeases, "start-leases", 500},
    WrongName{Wrong::kLeaseFromReceipt, "lease-from-receipt", 500},
    WrongName{Wrong::kFirstDraft, "first-draft", 500},
};

constexpr bool is(Wrong planted, Wrong asked) {
  if (planted == Wrong::kFirstDraft) {
    return asked == Wrong::kFreshByReceipt || asked == Wrong::kRenewAtOnce || asked == Wrong::kLazyAgent;
  }
  return planted == asked;
}

}  // namespace monarch::sim::takeover
