#pragma once

// Table: rows of words as aligned columns, for people. Cells are made printable here.
//
// Thread: a value.

#include <string>
#include <vector>

#include "cli/terminal.h"

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

  // Two blanks between columns, none at the end of a line; an empty cell is shown as -.
  std::string render(bool colour) const;

 private:
  std::vector<std::string> titles_;
  std::vector<std::vector<Cell>> rows_;
};

// Characters, as far as a terminal's columns go: bytes that begin one.
std::size_t display_width(std::string_view words);

}  // namespace monarch
