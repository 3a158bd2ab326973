#pragma once

// The faults that a drill can inject, by name: what each asks of `monarch-worker check` on its host, whom it may
// strike, by which events a job tells of it, and who is started again because of it. Ids are those of the table in
// tests/FAULTS.md.
//
// Thread: constant data.

#include <cstdint>
#include <span>
#include <string_view>

#include "supervisor/drill/core/measures.h"
#include "transport/base/time.h"
#include "transport/messages/event_kinds.h"
#include "transport/messages/strike.h"

namespace monarch::drill {

// What its host must allow beside processes of the job's own user.
enum class FaultNeed : std::uint8_t { kNothing, kTracing, kNft };

// Who is started again because of it, where it lasts as long as it may.
enum class FaultCost : std::uint8_t {
  kNobody,
  kItsGang,   // of the rank
  kItsGangs,  // of the host, which is lost
  kBySpec,    // its gang, where `hang.action` is restart and it lasts longer than the limit; else nobody
  kByLength,  // its gangs, where it lasts longer than lost_after and the lease; else nobody
  kByKeeper,  // its gangs, where lost_after may come before the keeper has another daemon; else nobody
  kIfFelt,    // its gang, where its program runs into it; else nobody, and it is inert
};

// What a scenario may, or must, say of it.
enum class FaultSays : std::uint8_t { kNothing, kProcesses, kPercent, kSize };

struct Fault {
  std::string_view name;
  std::string_view id;
  FaultClass of = FaultClass::kProcess;
  StrikeWhat what = StrikeWhat::kKill;
  StrikeWhom whom = StrikeWhom::kHost;
  StrikeWay way = StrikeWay::kBoth;
  Duration lasts;  // where a scenario does not say; zero: it does not last, what it does is done
  FaultNeed need = FaultNeed::kNothing;
  FaultSays says = FaultSays::kNothing;
  FaultCost cost = FaultCost::kNobody;
  std::span<const EventKind> told_by;  // one of these of its target is enough; empty: nothing tells of it
  bool needs_seeing = false;           // not being told is a failure of the job, whatever the length
  std::string_view does;               // for people: "SIGSEGV to the rank's process"

  bool can_last() const { return lasts > Duration::zero(); }
};

std::span<const Fault> faults();
// Nothing: there is none of that name.
const Fault* find_fault(std::string_view name);

}  // namespace monarch::drill
