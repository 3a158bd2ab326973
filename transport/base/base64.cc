#include "transport/base/base64.h"

#include <cstdint>

namespace monarch {

namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = i; j < i + 3; ++j) {
      group = group << 8U | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out.push_back(i + j <= bytes.size() ? kLetters[group >> (18 - 6 * j) & 63U] : '=');
    }
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string out;
  std::uint32_t group = 0;
  std::size_t letters = 0;
  std::size_t padding = 0;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') continue;
    const std::size_t value = c == '=' ? 0 : kLetters.find(c);
    if (value == std::string_view::npos || (padding > 0 && c != '=')) return std::nullopt;
    padding += c == '=' ? 1U : 0U;
    group = group << 6U | static_cast<std::uint32_t>(value);
    if (++letters % 4 != 0) continue;
    for (const unsigned shift : {16U, 8U, 0U}) out.push_back(static_cast<char>(group >> shift & 0xFFU));
    group = 0;
  }
  if (letters % 4 != 0 || padding > 2) return std::nullopt;
  out.resize(out.size() - padding);
  return out;
}

}  // namespace monarch
