#include "cli/term/terminal_filter.h"

#include <cstddef>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr char kEscape = '\x1b';
constexpr std::string_view kFinals = "mKJA";  // colours; erase the line, and what is below; up
constexpr std::size_t kLongestParameters = 16;

// How long what stands at the beginning is, and whether it may pass as it is.
struct Piece {
  std::size_t length = 0;  // 0: its end has not come yet
  bool harmless = true;
};

Piece escape_at(std::string_view bytes) {
  if (bytes.size() == 1) return {.length = 0};
  if (bytes[1] != '[') return {.length = 1, .harmless = false};
  const std::size_t end = bytes.find_first_not_of("0123456789;", 2);
  const std::size_t parameters = (end == std::string_view::npos ? bytes.size() : end) - 2;
  if (parameters > kLongestParameters) return {.length = 1, .harmless = false};
  if (end == std::string_view::npos) return {.length = 0};
  if (kFinals.find(bytes[end]) == std::string_view::npos) return {.length = 1, .harmless = false};
  return {.length = end + 1};
}

Piece piece_at(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (bytes[0] == kEscape) return escape_at(bytes);
  if (first < 0x20 || first == 0x7F) {
    return {.length = 1, .harmless = first == '\n' || first == '\r' || first == '\t'};
  }
  if (first != 0xC2) return {.length = 1};
  // U+0080 to U+009F are control characters, too; of one byte each they are no UTF-8, and shown as such.
  if (bytes.size() == 1) return {.length = 0};
  const auto second = static_cast<unsigned char>(bytes[1]);
  return second >= 0x80 && second < 0xA0 ? Piece{.length = 2, .harmless = false} : Piece{.length = 1};
}

}  // namespace

std::string TerminalFilter::pass(std::string_view bytes) {
  held_.append(bytes);
  std::string out;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Piece piece = piece_at(rest);
    if (piece.length == 0) break;
    const std::string_view taken = rest.substr(0, piece.length);
    piece.harmless ? out.append(taken) : out.append(printable(taken));
    rest.remove_prefix(piece.length);
  }
  held_ = std::string(rest);
  return out;
}

}  // namespace monarch
