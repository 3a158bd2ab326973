#include "cli/term/ranges_text.h"

#include <cstddef>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kMostPieces = 16;

}  // namespace

std::string ranges_text(const std::set<std::uint32_t>& numbers) {
  std::string out;
  std::size_t pieces = 0;
  for (auto next = numbers.begin(); next != numbers.end();) {
    if (++pieces > kMostPieces) return out + ",…";
    const std::uint32_t first = *next;
    std::uint32_t last = first;
    for (++next; next != numbers.end() && *next == last + 1; ++next) last = *next;
    out += text(out.empty() ? "" : ",", first);
    if (last != first) out += text("-", last);
  }
  return out;
}

}  // namespace monarch
