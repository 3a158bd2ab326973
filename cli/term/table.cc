#include "cli/term/table.h"

#include <algorithm>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kIndent = 6;  // of what goes on from the line above
constexpr char kNothing[] = "-";

}  // namespace

std::size_t display_width(std::string_view words) {
  return static_cast<std::size_t>(std::count_if(
      words.begin(), words.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// The first column of each line that a row is broken into.
std::vector<std::size_t> Table::line_begins(const std::vector<std::size_t>& widths, std::size_t columns) const {
  std::vector<std::size_t> begins = {0};
  std::size_t used = widths.empty() ? 0 : widths.front();
  for (std::size_t i = 1; i < widths.size(); ++i) {
    used += 2 + widths[i];
    if (columns == 0 || used <= columns) continue;
    begins.push_back(i);
    used = kIndent + widths[i];
  }
  return begins;
}

std::string Table::render(bool colour, std::size_t columns) const {
  std::vector<std::vector<Cell>> lines;
  lines.emplace_back();
  for (const std::string& title : titles_) lines.back().push_back({.words = title, .colour = Colour::kBold});
  for (const std::vector<Cell>& row : rows_) {
    lines.emplace_back();
    for (const Cell& cell : row) {
      lines.back().push_back({.words = cell.words.empty() ? kNothing : printable(cell.words), .colour = cell.colour});
    }
  }
  std::vector<std::size_t> widths(titles_.size(), 0);
  for (const std::vector<Cell>& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], display_width(line[i].words));
  }
  std::vector<std::size_t> ends = line_begins(widths, columns);
  ends.erase(ends.begin());
  ends.push_back(titles_.size());
  std::string out;
  for (const std::vector<Cell>& line : lines) {
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      const auto first = line.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto last = line.begin() + static_cast<std::ptrdiff_t>(std::min(end, line.size()));
      const bool empty = std::all_of(first, last, [](const Cell& cell) { return cell.words == kNothing; });
      const std::size_t from = std::exchange(begin, end);
      if (from > 0 && empty) continue;
      if (from > 0) out.append(kIndent, ' ');
      for (std::size_t i = from; i < std::min(end, line.size()); ++i) {
        out += paint(line[i].colour, line[i].words, colour);
        if (i + 1 < std::min(end, line.size())) out.append(widths[i] - display_width(line[i].words) + 2, ' ');
      }
      out.push_back('\n');
    }
  }
  return out;
}

}  // namespace monarch
