#include "transport/wire/check_stream.h"

#include <charconv>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kLengthDigits = 7;

}  // namespace

std::string encode_piece(std::string_view payload) { return text(payload.size(), '\n', payload); }

Result<std::optional<std::string>> take_piece(std::string& bytes) {
  const std::size_t end = bytes.find('\n');
  if (end == std::string::npos && bytes.size() <= kLengthDigits) return std::optional<std::string>();
  std::size_t length = 0;
  const char* const last = bytes.data() + std::min(end, bytes.size());
  const auto [stopped, error] = std::from_chars(bytes.data(), last, length);
  if (end == std::string::npos || error != std::errc() || stopped != last || length > kCheckBytes) {
    return Error{ErrorCode::kInvalid, text("`", printable(bytes.substr(0, std::min<std::size_t>(end, 80))),
                                           "` is not the length of a message")};
  }
  if (bytes.size() - end - 1 < length) return std::optional<std::string>();
  std::string piece = bytes.substr(end + 1, length);
  bytes.erase(0, end + 1 + length);
  return std::optional<std::string>(std::move(piece));
}

}  // namespace monarch
