#include "transport/base/step_lines.h"

#include <algorithm>
#include <charconv>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kBytesOfALine = 320;  // two digits each, behind a name of at most 255 bytes

}  // namespace

bool read_step_line(std::string_view line, StepLine& read) {
  if (!line.starts_with('@')) return false;
  line.remove_prefix(1);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
  const std::size_t blank = line.find(' ');
  if (blank == 0 || blank == std::string_view::npos) return false;
  read = {.node = line.substr(0, blank), .rest = line.substr(blank + 1)};
  return true;
}

std::string step_lines(std::string_view node, std::string_view bytes) {
  std::string lines;
  do {
    const std::string_view piece = bytes.substr(0, kBytesOfALine);
    bytes.remove_prefix(piece.size());
    lines += text('@', node, bytes.empty() ? " =" : " +", to_hex(piece), '\n');
  } while (!bytes.empty());
  return lines;
}

StepBytes::Sight StepBytes::add(std::string_view rest) {
  if (rest.empty() || (rest.front() != '+' && rest.front() != '=')) return Sight::kOther;
  const bool last = rest.front() == '=';
  const std::string_view digits = rest.substr(1);
  if (over_ || digits.size() % 2 != 0 || bytes_.size() + digits.size() / 2 > limit_) {
    over_ = true;
    return Sight::kBroken;
  }
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    unsigned value = 0;
    const char* const end = digits.data() + i + 2;
    const auto [stopped, error] = std::from_chars(digits.data() + i, end, value, 16);
    if (error != std::errc() || stopped != end) {
      over_ = true;
      return Sight::kBroken;
    }
    bytes_ += static_cast<char>(value);
  }
  over_ = last;
  return last ? Sight::kWhole : Sight::kMore;
}

}  // namespace monarch
