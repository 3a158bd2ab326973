#include "supervisor/spec/hosts/network_names.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "supervisor/core/spec/hostlist.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view kDigits = "0123456789";

bool only(std::string_view text, std::string_view first, std::string_view second, std::string_view third = "") {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return first.find(c) != std::string_view::npos || second.find(c) != std::string_view::npos ||
           third.find(c) != std::string_view::npos;
  });
}

std::optional<std::uint16_t> read_port(std::string_view digits) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) return std::nullopt;
  return port;
}

}  // namespace

bool is_user_name(std::string_view name) {
  constexpr std::size_t kLongest = 64;
  if (name.empty() || name.size() > kLongest) return false;
  return only(name.substr(0, 1), kLetters, "_") && only(name, kLetters, kDigits, "_.-");
}

bool is_interface_name(std::string_view name) {
  constexpr std::size_t kLongest = 15;  // IFNAMSIZ without the NUL
  if (name.empty() || name.size() > kLongest || name == "." || name == ".." || name.front() == '-') return false;
  return only(name, kLetters, kDigits, "_.-@");
}

NumericAddress numeric_address(std::string_view text) {
  const std::string address(text);
  if (address.find('\0') != std::string::npos) return NumericAddress::kNone;
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    const std::uint32_t number = ntohl(v4.s_addr);
    if (number == INADDR_ANY) return NumericAddress::kUnspecified;
    return number >> 24U == 127 ? NumericAddress::kLoopback : NumericAddress::kOther;
  }
  in6_addr v6{};
  if (::inet_pton(AF_INET6, address.c_str(), &v6) != 1) return NumericAddress::kNone;
  if (std::memcmp(&v6, &in6addr_any, sizeof v6) == 0) return NumericAddress::kUnspecified;
  return std::memcmp(&v6, &in6addr_loopback, sizeof v6) == 0 ? NumericAddress::kLoopback : NumericAddress::kOther;
}

bool is_address(std::string_view text) {
  if (numeric_address(text) != NumericAddress::kNone) return true;
  // No name ends in a number; 10.0.0.300 was meant to be an address.
  const std::string_view last = text.substr(text.rfind('.') + 1);
  return is_host_name(text) && (last.empty() || text.find('.') == std::string_view::npos || !only(last, kDigits, ""));
}

bool is_key_fingerprint(std::string_view text) {
  constexpr std::string_view kHash = "SHA256:";
  constexpr std::size_t kLength = 43;  // 256 bits in base64, without the `=` behind them
  return text.starts_with(kHash) && text.size() == kHash.size() + kLength &&
         only(text.substr(kHash.size()), kLetters, kDigits, "+/");
}

std::optional<SshJump> read_jump(std::string_view text) {
  SshJump jump;
  if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
    jump.user = text.substr(0, at);
    text.remove_prefix(at + 1);
    if (!is_user_name(jump.user)) return std::nullopt;
  }
  const bool bracketed = text.starts_with('[');
  const std::size_t close = bracketed ? text.find(']') : 0;
  if (close == std::string_view::npos) return std::nullopt;
  const std::size_t colon = std::min(text.find(':', close), text.size());
  if (bracketed && colon != close + 1 && colon != text.size()) return std::nullopt;
  jump.address = bracketed ? text.substr(1, close - 1) : text.substr(0, colon);
  const bool v6 = jump.address.find(':') != std::string::npos;
  if (!is_address(jump.address) || v6 != bracketed) return std::nullopt;
  if (colon == text.size()) return bracketed && close + 1 != text.size() ? std::nullopt : std::optional(jump);
  jump.port = read_port(text.substr(colon + 1));
  return jump.port ? std::optional(jump) : std::nullopt;
}

}  // namespace monarch
