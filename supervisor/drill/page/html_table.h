#pragma once

// HtmlTable: rows of cells that are HTML already. It reads as a table without styles, too.
//
// Thread: a value.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace monarch::drill {

enum class Cells : std::uint8_t { kWords, kShort, kNumber };  // may be broken; stays on its line; to the right

struct Column {
  std::string_view title;
  Cells cells = Cells::kWords;
};

class HtmlTable {
 public:
  explicit HtmlTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many as there are columns.
  void add(const std::vector<std::string>& cells);
  bool empty() const { return rows_.empty(); }
  std::string html() const;

 private:
  std::vector<Column> columns_;
  std::string rows_;
};

}  // namespace monarch::drill
