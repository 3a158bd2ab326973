#include "transport/tensor/core/card.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/limits.h"
#include "transport/base/take_number.h"
#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

constexpr std::string_view kCardVersion = "1";

std::optional<unsigned char> half_byte(char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<unsigned char>(digit - '0');
  if (digit >= 'a' && digit <= 'f') return static_cast<unsigned char>(digit - 'a' + 10);
  return std::nullopt;
}

bool read_secret(std::string_view hex, std::array<unsigned char, kSecretBytes>& secret) {
  if (hex.size() != 2 * kSecretBytes) return false;
  for (std::size_t i = 0; i < kSecretBytes; ++i) {
    const auto high = half_byte(hex[2 * i]);
    const auto low = half_byte(hex[2 * i + 1]);
    if (!high || !low) return false;
    secret[i] = static_cast<unsigned char>(*high << 4U | *low);
  }
  return true;
}

}  // namespace

// KEY=VALUE, each in a line; no value has an end of line.
std::string card_text(const Card& card) {
  const std::string_view secret(reinterpret_cast<const char*>(card.secret.data()), card.secret.size());
  return text("card=", kCardVersion, "\nmachine=", card.machine, "\npath=", card.path, "\naddress=", card.address,
              "\nport=", card.port, "\nsecret=", to_hex(secret), '\n');
}

Card with_secret(Card card, std::string_view secret) {
  MONARCH_ASSERT(secret.size() == kSecretBytes);
  std::copy(secret.begin(), secret.end(), card.secret.begin());
  return card;
}

Result<Card> parse_card(std::string_view text) {
  const Error none{ErrorCode::kInvalid, "a card that is none"};
  if (text.size() > limits::kCardBytes) return none;
  std::map<std::string_view, std::string_view> values;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::size_t is = line.find('=');
    if (end == std::string_view::npos || is == std::string_view::npos) return none;
    if (!values.emplace(line.substr(0, is), line.substr(is + 1)).second) return none;
    text.remove_prefix(end + 1);
  }
  Card card;
  std::string_view port = values["port"];
  const bool known = values["card"] == kCardVersion && !values["machine"].empty() && !values["path"].empty();
  if (!known || !take_number(port, card.port) || !port.empty() || !read_secret(values["secret"], card.secret))
    return none;
  card.machine = values["machine"];
  card.path = values["path"];
  card.address = values["address"];
  if (card.address.empty() != (card.port == 0)) return none;
  return card;
}

}  // namespace monarch::tensor
