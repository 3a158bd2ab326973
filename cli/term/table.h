#pragma once

// Table: rows of words as aligned columns, for people. Cells are made printable here.
//
// Thread: a value.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/term/terminal.h"

namespace monarch {

class Table {
 public:
  explicit Table(std::vector<std::string> titles) : titles_(std::move(titles)) {}

  struct Cell {
    std::string words;
    Colour colour = Colour::kNone;
  };
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }

  // Two blanks between columns, none at the end of a line; an empty cell is shown as -. What does not fit into
  // `columns` (0: all does) goes on in indented lines below.
  std::string render(bool colour, std::size_t columns = 0) const;

 private:
  std::vector<std::size_t> line_begins(const std::vector<std::size_t>& widths, std::size_t columns) const;

  std::vector<std::string> titles_;
  std::vector<std::vector<Cell>> rows_;
};

// A cell without a colour of its own.
inline Table::Cell plain_cell(std::string words) { return {.words = std::move(words), .colour = Colour::kNone}; }

// Characters, as far as a terminal's columns go: bytes that begin one.
std::size_t display_width(std::string_view words);

}  // namespace monarch
