#include "supervisor/drill/page/html_table.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch::drill {

namespace {

std::string_view attributes_of(Cells cells) {
  switch (cells) {
    case Cells::kWords: return " class=\"w\"";
    case Cells::kShort: return " class=\"m\"";
    case Cells::kNumber: return " class=\"n\" align=\"right\"";
  }
  return "";
}

}  // namespace

void HtmlTable::add(const std::vector<std::string>& cells) {
  rows_ += "<tr>";
  for (std::size_t i = 0; i < std::min(cells.size(), columns_.size()); ++i) {
    rows_ += text("<td", attributes_of(columns_[i].cells), ">", cells[i], "</td>");
  }
  rows_ += "</tr>\n";
}

std::string HtmlTable::html() const {
  std::string head;
  for (const Column& column : columns_) {
    head += text("<th scope=\"col\"", attributes_of(column.cells), ">", column.title, "</th>");
  }
  return text("<div class=\"scroll\"><table cellpadding=\"4\"><thead><tr>", head, "</tr></thead><tbody>\n", rows_,
              "</tbody></table></div>\n");
}

}  // namespace monarch::drill
