#pragma once

// A lot: hosts that are asked in rounds which they finish together, and how long one of them may keep the others
// waiting.
//
// Thread: values of whoever asks.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "supervisor/doctor/host_errand.h"
#include "transport/base/time.h"

namespace monarch::doctor {

// Who keeps the others of its lot waiting for longer goes on by itself, and meets a later lot. The first round is
// measured by who answered first, since all may have to take the same file over the same wire; in the others every host
// has been reached.
inline constexpr Duration kLookPatience = Duration::seconds(5);
inline constexpr int kLookShare = 3;
inline constexpr Duration kLatePatience = Duration::seconds(30);  // of those that are asked again
inline constexpr Duration kRoundPatience = Duration::seconds(10);

enum class LotRound : std::uint8_t { kLook, kMeet, kRead, kLeave };

struct LotMember {
  enum class Phase : std::uint8_t { kWaiting, kBusy, kIdle, kOver };
  std::size_t host = 0;
  Phase phase = Phase::kWaiting;
  LotRound asked = LotRound::kLook;  // last
  std::unique_ptr<Orders> orders;
  DoorCall door;
};

}  // namespace monarch::doctor
