#include "transport/base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace monarch {

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out.append(separator);
    out.append(part);
  }
  return out;
}

std::string counted(std::uint64_t number, std::string_view one) {
  return text(number, " ", one, number == 1 ? "" : "s");
}

std::string counted(std::uint64_t number, std::string_view one, std::string_view many) {
  return text(number, " ", number == 1 ? one : many);
}

namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

void append_escaped(std::string& out, unsigned char byte) {
  out.append("\\x");
  out.push_back(kHexDigits[byte >> 4U]);
  out.push_back(kHexDigits[byte & 15U]);
}

// Length of the well-formed UTF-8 sequence at the front of `rest` that is safe to show; 0 if there is none.
std::size_t safe_sequence(std::string_view rest) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  const unsigned char lead = byte(0);
  std::size_t length = 0;
  std::uint32_t point = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    point = lead & 0x1FU;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    point = lead & 0x0FU;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    point = lead & 0x07U;
  }
  if (length == 0 || rest.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
    point = (point << 6U) | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  const bool c1_control = point < 0xA0;
  // U+202A..202E and U+2066..2069 reorder what follows them on a terminal; U+2028/2029 end lines.
  const bool steers = (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
  return overlong || surrogate || c1_control || steers || point > 0x10FFFF ? 0 : length;
}

}  // namespace

bool is_printable_ascii(std::string_view raw) {
  return std::all_of(raw.begin(), raw.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

bool all_digits(std::string_view raw) {
  return !raw.empty() && std::all_of(raw.begin(), raw.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string printable(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size();) {
    const auto byte = static_cast<unsigned char>(raw[i]);
    if ((byte >= 0x20 && byte < 0x7F) || byte == '\t') {
      out.push_back(raw[i++]);
      continue;
    }
    const std::size_t length = byte < 0x80 ? 0 : safe_sequence(raw.substr(i));
    if (length == 0) {
      append_escaped(out, byte);
      ++i;
    } else {
      out.append(raw.substr(i, length));
      i += length;
    }
  }
  return out;
}

std::string xml_text(std::string_view raw) {
  std::string out;
  while (!raw.empty()) {
    const std::size_t newline = raw.find('\n');
    for (const char c : printable(raw.substr(0, newline))) {
      switch (c) {
        case '&': out += "&amp;"; break;
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '"': out += "&quot;"; break;
        case '\'': out += "&apos;"; break;
        default: out.push_back(c);
      }
    }
    if (newline == std::string_view::npos) break;
    out += "&#10;";
    raw.remove_prefix(newline + 1);
  }
  // The two characters of the first plane that XML does not have and a terminal does not mind.
  for (const std::string_view none : {std::string_view("\xef\xbf\xbe"), std::string_view("\xef\xbf\xbf")}) {
    for (std::size_t at = out.find(none); at != std::string::npos; at = out.find(none)) out.replace(at, 3, "\\uffff");
  }
  return out;
}

std::string to_hex(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out.push_back(kHexDigits[byte >> 4U]);
    out.push_back(kHexDigits[byte & 15U]);
  }
  return out;
}

std::string amount_text(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  std::uint64_t tenths = bytes;  // of the unit, once it is not bytes
  for (std::uint64_t whole = bytes; whole >= 1024 && unit + 1 < kUnits.size(); ++unit) {
    tenths = whole * 10 / 1024;
    whole /= 1024;
  }
  if (unit == 0) return text(bytes, kUnits[0]);
  return text(tenths / 10, tenths % 10 == 0 ? "" : text('.', tenths % 10), kUnits[unit]);
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/@:%+=,[]";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) c == '\'' ? out.append("'\\''") : out.append(1, c);
  return out + "'";
}

}  // namespace monarch
