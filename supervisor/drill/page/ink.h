#pragma once

// The colours of the page's pictures: one for each bin of the ledger, and two for what has no bin. Each stands as an
// attribute, for a page without styles, and as a property of CSS, which is another one in the dark.
//
// Thread: constant data.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "supervisor/core/state/ledger.h"

namespace monarch::drill {

inline constexpr std::size_t kInks = kTimeBins + 2;
enum class Ink : std::uint8_t { kFirstBin = 0, kIdle = kTimeBins, kUp };

struct InkFacts {
  std::string_view name;  // of its class
  std::string_view light;
  std::string_view dark;
  std::string_view words;
};
const InkFacts& facts_of(Ink ink);
constexpr Ink ink_of(TimeBin bin) { return static_cast<Ink>(bin); }
constexpr Ink ink_of(const std::optional<TimeBin>& bin) { return bin ? ink_of(*bin) : Ink::kIdle; }

// A small box of that colour, for words beside it.
std::string swatch(Ink ink);
// Those that are used, with their words.
std::string key_of(const std::array<bool, kInks>& used);

// The page's style sheet, with these colours.
std::string style_sheet();

}  // namespace monarch::drill
