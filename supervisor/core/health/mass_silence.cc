#include "supervisor/core/health/mass_silence.h"

#include <algorithm>

namespace monarch {

std::size_t MassSilence::many(std::size_t hosts) {
  constexpr std::size_t kFewest = 2;
  constexpr std::size_t kPercent = 40;
  return std::max(kFewest, (hosts * kPercent + 99) / 100);
}

bool MassSilence::turn(std::vector<Silent> silent, std::size_t of, Instant now) {
  if (hold_ && (now >= hold_->until || silent.empty())) hold_.reset();
  std::erase_if(silent, [this](const Silent& one) { return one.held_before || covers(one.since); });
  std::sort(silent.begin(), silent.end(), [](const Silent& a, const Silent& b) { return a.since < b.since; });
  const std::size_t need = many(of);
  std::size_t first = 0;
  for (std::size_t last = 0; last < silent.size(); ++last) {
    while (silent[last].since - silent[first].since > together_) ++first;
    if (last - first + 1 < need) continue;
    hold_ = Hold{.silent = silent.size(), .of = of, .until = now + length_, .latest = silent[last].since};
    return true;
  }
  return false;
}

}  // namespace monarch
