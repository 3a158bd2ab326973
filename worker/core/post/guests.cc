#include "worker/core/post/guests.h"

namespace monarch {

namespace {

constexpr std::uint32_t kNumbersOfAStart = 1U << 20U;
constexpr std::uint64_t kSpans = 1U << 11U;  // all of them fit in 31 bits
constexpr std::uint64_t kSpansOfAWorker = 1'021;

// What was asked of the guests of an earlier start may come to this one: no number means two guests. From 1 on, where
// the start is its host's first.
std::uint32_t first_guest_of(const PostStart& start) {
  const std::uint64_t span = (start.worker - 1) * kSpansOfAWorker + (start.number - 1);
  return static_cast<std::uint32_t>(span % kSpans) * kNumbersOfAStart + 1;
}

}  // namespace

Guests::Guests(const PostStart& start) : first_(first_guest_of(start)), next_(first_) {}

RankId Guests::came(DoorId door) {
  const Rank number(next_++);
  doors_[door] = number;
  here_.insert(number);
  return {kGuestsMeshId, number};
}

std::optional<RankId> Guests::left(DoorId door) {
  const auto found = doors_.find(door);
  if (found == doors_.end()) return std::nullopt;
  const Rank number = found->second;
  doors_.erase(found);
  here_.erase(number);
  return RankId{kGuestsMeshId, number};
}

std::string Guests::why_lost(Rank number) const {
  return number.value() >= first_ && number.value() < next_ ? kHasLeft : "there is no such guest";
}

}  // namespace monarch
