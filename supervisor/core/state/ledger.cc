#include "supervisor/core/state/ledger.h"

#include <algorithm>

namespace monarch {

namespace {

Duration& of(Ledger& ledger, TimeBin bin) { return ledger.spent[static_cast<std::size_t>(bin)]; }

}  // namespace

std::string_view name_of(TimeBin bin) {
  switch (bin) {
    case TimeBin::kNew: return "new";
    case TimeBin::kRedone: return "redone";
    case TimeBin::kStill: return "still";
    case TimeBin::kDeciding: return "deciding";
    case TimeBin::kWaiting: return "waiting";
    case TimeBin::kLaunching: return "launching";
    case TimeBin::kStarting: return "starting";
    case TimeBin::kStopping: return "stopping";
  }
  return "";
}

void enter(Ledger& ledger, std::optional<TimeBin> bin, Instant at) {
  if (bin == ledger.bin) return;
  const Instant now = ledger.bin ? std::max(at, ledger.since) : at;
  if (ledger.bin) of(ledger, *ledger.bin) = of(ledger, *ledger.bin) + (now - ledger.since);
  ledger.bin = bin;
  ledger.since = now;
}

void named_step(Ledger& ledger, TimeBin bin, Instant at) {
  if (ledger.bin == TimeBin::kNew) {
    const Instant now = std::max(at, ledger.since);
    of(ledger, TimeBin::kStarting) = of(ledger, TimeBin::kStarting) + (now - ledger.since);
    ledger.since = now;
    ledger.bin = bin;
    return;
  }
  enter(ledger, bin, at);
}

void stood_still(Ledger& ledger, Instant from, Instant to) {
  if (ledger.bin != TimeBin::kNew && ledger.bin != TimeBin::kRedone) return;
  const Instant begins = std::max(from, ledger.since);
  if (to <= begins) return;
  const TimeBin works = *ledger.bin;
  enter(ledger, TimeBin::kStill, begins);
  enter(ledger, works, to);
}

Duration spent_in(const Ledger& ledger, TimeBin bin, Instant now) {
  const Duration before = ledger.spent[static_cast<std::size_t>(bin)];
  return ledger.bin == bin && now > ledger.since ? before + (now - ledger.since) : before;
}

}  // namespace monarch
