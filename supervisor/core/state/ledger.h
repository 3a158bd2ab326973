#pragma once

// Ledger: where the time of a gang went. At each instant it is in one bin, so the bins add up to the time since the job
// began, or until the gang had ended; times its ranks that is rank-seconds. It needs to know of no fault: a job that
// nobody disturbs has the same one.
//
//   new        steps that none of its generations had done; where its program names none: since it was ready
//   redone     steps that it does again after a start
//   still      from its last sign of life to where its failure was seen, and pauses that are longer than usual
//   deciding   from there to its next START: the first cause, the fence of what may still act, back-off
//   waiting    for hosts, for other meshes; or parked
//   launching  from START until every rank was executed
//   starting   from there to its first step, or until it was ready
//   stopping   since it was told to end
//
// Thread: values.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "transport/base/time.h"

namespace monarch {

enum class TimeBin : std::uint8_t {
  kNew,
  kRedone,
  kStill,
  kDeciding,
  kWaiting,
  kLaunching,
  kStarting,
  kStopping,
};
inline constexpr std::size_t kTimeBins = 8;
constexpr TimeBin monarch_enum_max(TimeBin) { return TimeBin::kStopping; }
std::string_view name_of(TimeBin bin);

struct Ledger {
  std::array<Duration, kTimeBins> spent{};  // by bin, until `since`
  std::optional<TimeBin> bin;               // in which it is since then; nothing: it has ended, or has not begun
  Instant since;
};

// From then on it is there. A time before the last such is taken for that.
void enter(Ledger& ledger, std::optional<TimeBin> bin, Instant at);
// It has named its first step of this generation: until then it was starting, ready or not.
void named_step(Ledger& ledger, TimeBin bin, Instant at);
// It worked on nothing from `from` to `to`; what of that is before the last change of bin stays where it is.
void stood_still(Ledger& ledger, Instant from, Instant to);
// Until then, with what is under way.
Duration spent_in(const Ledger& ledger, TimeBin bin, Instant now);

}  // namespace monarch
