#include "cli/table.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch {

std::size_t display_width(std::string_view words) {
  return static_cast<std::size_t>(std::count_if(
      words.begin(), words.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string Table::render(bool colour) const {
  std::vector<std::vector<Cell>> lines;
  lines.emplace_back();
  for (const std::string& title : titles_) lines.back().push_back({.words = title, .colour = Colour::kBold});
  for (const std::vector<Cell>& row : rows_) {
    lines.emplace_back();
    for (const Cell& cell : row) {
      lines.back().push_back({.words = cell.words.empty() ? "-" : printable(cell.words), .colour = cell.colour});
    }
  }
  std::vector<std::size_t> widths(titles_.size(), 0);
  for (const std::vector<Cell>& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], display_width(line[i].words));
  }
  std::string out;
  for (const std::vector<Cell>& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      out += paint(line[i].colour, line[i].words, colour);
      if (i + 1 < line.size()) out.append(widths[i] - display_width(line[i].words) + 2, ' ');
    }
    out.push_back('\n');
  }
  return out;
}

}  // namespace monarch
