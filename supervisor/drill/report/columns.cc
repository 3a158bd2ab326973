#include "supervisor/drill/report/columns.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "transport/base/text.h"

namespace monarch::drill {

void ColumnWriter::add(ColumnValue value) {
  std::string token = "-";
  if (value) {
    const std::int64_t clamped = std::clamp(*value, -kMostValue, kMostValue);
    token = text(clamped - before_);
    before_ = clamped;
  }
  if (token == token_) {
    ++many_;
    return;
  }
  flush();
  token_ = std::move(token);
  many_ = 1;
}

std::string ColumnWriter::done() {
  flush();
  return std::move(out_);
}

void ColumnWriter::flush() {
  if (many_ == 0) return;
  if (!out_.empty()) out_ += ' ';
  out_ += many_ == 1 ? token_ : text(token_, '*', many_);
  many_ = 0;
}

std::optional<std::vector<ColumnValue>> read_column(const Json& json, std::size_t many) {
  const auto words = json.as_string();
  if (!words) return std::nullopt;
  std::vector<ColumnValue> values;
  std::int64_t last = 0;
  for (std::string_view left = *words; !left.empty();) {
    const std::string_view token = left.substr(0, left.find(' '));
    left.remove_prefix(std::min(token.size() + 1, left.size()));
    const std::size_t star = token.find('*');
    const std::string_view number = token.substr(0, star);
    std::size_t times = 1;
    if (star != std::string_view::npos) {
      const auto read = std::from_chars(token.data() + star + 1, token.data() + token.size(), times);
      if (read.ec != std::errc() || read.ptr != token.data() + token.size() || times == 0) return std::nullopt;
    }
    if (times > many - values.size()) return std::nullopt;
    std::int64_t more = 0;
    if (number != "-") {
      const auto read = std::from_chars(number.data(), number.data() + number.size(), more);
      if (read.ec != std::errc() || read.ptr != number.data() + number.size()) return std::nullopt;
      if (more > 2 * kMostValue || more < -2 * kMostValue) return std::nullopt;
    }
    for (std::size_t i = 0; i < times; ++i) {
      last += more;
      if (last > kMostValue || last < -kMostValue) return std::nullopt;
      values.push_back(number == "-" ? ColumnValue() : ColumnValue(last));
    }
  }
  if (values.size() != many) return std::nullopt;
  return values;
}

}  // namespace monarch::drill
