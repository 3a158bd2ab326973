#include "transport/tensor/core/link_room.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

constexpr std::uint64_t kFewest = 3;  // places of readers, whatever else there is: one of each use

}  // namespace

void LinkRoom::set_files(std::uint64_t most) { files_ = std::min(most, kMostFiles); }

std::uint64_t LinkRoom::strangers() const { return std::clamp(half() / 8, std::uint64_t{1}, kStrangers); }

std::uint64_t LinkRoom::count(LinkUse use) const {
  return static_cast<std::uint64_t>(
      std::count_if(links_.begin(), links_.end(), [use](const auto& one) { return one.second.use == use; }));
}

std::uint64_t LinkRoom::places() const {
  const std::uint64_t others = 2 * strangers() + count(LinkUse::kPublishes);
  return std::max(half() - std::min(half(), others), kFewest);
}

// The other half of what is left is for rows.
std::uint64_t LinkRoom::for_words() const { return std::max((places() - for_more_rows()) / 2, std::uint64_t{1}); }

std::optional<LinkNumber> LinkRoom::idle(std::optional<LinkUse> use, Instant now) const {
  std::optional<LinkNumber> found;
  for (const auto& [number, link] : links_) {
    const bool meant = use ? link.use == *use : link.use != LinkUse::kPublishes;
    if (!meant || link.reads || link.maps || now - link.moved < kLent) continue;
    if (!found || link.moved < links_.at(*found).moved) found = number;
  }
  return found;
}

LinkRoom::Answer LinkRoom::ask(LinkUse use, Instant now) const {
  const bool any_left = readers() < places();
  switch (use) {
    case LinkUse::kPublishes: return {.has_place = true, .ends = any_left ? std::nullopt : idle(std::nullopt, now)};
    case LinkUse::kMoreRows: return {.has_place = !is_tight(), .ends = {}};
    case LinkUse::kWords: {
      const bool its_left = count(use) < for_words();
      if (its_left && any_left) return {.has_place = true, .ends = {}};
      const auto ends = idle(its_left ? std::nullopt : std::optional(use), now);
      return {.has_place = ends.has_value(), .ends = ends};
    }
    case LinkUse::kRows: {
      if (any_left) return {.has_place = true, .ends = {}};
      auto ends = idle(LinkUse::kMoreRows, now);
      if (!ends) ends = idle(use, now);
      return {.has_place = ends.has_value(), .ends = ends};
    }
  }
  return {};
}

std::string LinkRoom::full() const {
  return text("it has no place for one more link: readers have ", readers(), ", and it may have ", files_,
              " open files (ulimit -n)");
}

void LinkRoom::enter(LinkNumber link, LinkUse use, Instant now) { links_[link] = {.use = use, .moved = now}; }

void LinkRoom::moves(LinkNumber link, Instant now) {
  if (const auto found = links_.find(link); found != links_.end()) found->second.moved = now;
}

void LinkRoom::reads(LinkNumber link, bool does, Instant now) {
  moves(link, now);
  if (const auto found = links_.find(link); found != links_.end()) found->second.reads = does;
}

void LinkRoom::maps(LinkNumber link, bool does, Instant now) {
  moves(link, now);
  if (const auto found = links_.find(link); found != links_.end()) found->second.maps = does;
}

}  // namespace monarch::tensor
