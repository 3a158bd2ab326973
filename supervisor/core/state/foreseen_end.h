#pragma once

// ForeseenEnd: that who gave the hosts takes them back at a time, and why.
//
// Thread: a value.

#include <cstdint>
#include <string>

#include "supervisor/core/spec/launch_facts.h"
#include "transport/base/time.h"

namespace monarch {

enum class ForeseenKind : std::uint8_t { kPreempted, kTimeLimit };
constexpr ForeseenKind monarch_enum_max(ForeseenKind) { return ForeseenKind::kTimeLimit; }

struct ForeseenEnd {
  ForeseenKind kind = ForeseenKind::kPreempted;
  std::string why;                  // one line for people
  Instant by = Instant::never();    // what runs then is killed; never(): not known yet
  Instant kill = Instant::never();  // ranks that are being stopped have until then
};

// By which a job is stopped then, as its verdict names it: "launch.slurm.on_preempt: stop".
std::string rule_of(const LaunchFacts& launch);

}  // namespace monarch
