#include "transport/base/nearest.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch {

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cells((a.size() + 1) * width);
  const auto cell = [&](std::size_t i, std::size_t j) -> std::size_t& { return cells[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) cell(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cell(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = cell(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      cell(i, j) = std::min({cell(i - 1, j) + 1, cell(i, j - 1) + 1, change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cell(i, j) = std::min(cell(i, j), cell(i - 2, j - 2) + 1);
    }
  }
  return cell(a.size(), b.size());
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  if (word.empty() || word.size() > kLongestCompared) return std::nullopt;
  const std::size_t allowed = word.size() <= 2 ? 0 : std::max<std::size_t>(1, word.size() / 3);
  std::optional<std::string> best;
  std::size_t best_distance = allowed + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string nearest_or_all(std::string_view word, const std::vector<std::string>& known) {
  if (known.empty()) return "; it has none";
  if (const auto near = nearest(word, known)) return text("; did you mean ", *near, "?");
  return text("; it has ", join(known, ", "));
}

}  // namespace monarch
