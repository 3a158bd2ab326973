#include "supervisor/launch/ssh/session/ssh_wire.h"

#include "transport/base/text.h"

namespace monarch::ssh_wire {

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t number = 0;
  for (const char byte : bytes.substr(0, kLengthBytes)) number = number << 8U | static_cast<unsigned char>(byte);
  return number;
}

std::string in_big_endian(std::size_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift & 0xff));
  return bytes;
}

std::optional<std::string_view> next_string(std::string_view& bytes) {
  if (bytes.size() < kLengthBytes) return std::nullopt;
  const std::uint32_t length = big_endian(bytes);
  if (length > bytes.size() - kLengthBytes) return std::nullopt;
  const std::string_view found = bytes.substr(kLengthBytes, length);
  bytes.remove_prefix(kLengthBytes + length);
  return found;
}

std::string plain_key(std::string_view key) {
  constexpr std::string_view kSuffix = "-cert-v01@openssh.com";
  std::string_view rest = key;
  const auto type = next_string(rest);
  if (!type || !type->ends_with(kSuffix) || !next_string(rest)) return std::string(key);
  const std::string_view of = type->substr(0, type->size() - kSuffix.size());
  const std::string_view numbers = rest;
  for (int count = of == "ssh-ed25519" ? 1 : of == "sk-ecdsa-sha2-nistp256@openssh.com" ? 3 : 2; count > 0; --count) {
    if (!next_string(rest)) return std::string(key);
  }
  return text(in_big_endian(of.size()), of, numbers.substr(0, numbers.size() - rest.size()));
}

}  // namespace monarch::ssh_wire
