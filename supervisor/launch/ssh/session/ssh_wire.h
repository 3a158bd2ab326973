#pragma once

// What SSH's keys are made of: numbers of four bytes, and strings behind their lengths (RFC 4251, section 5).
//
// Thread: pure functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace monarch::ssh_wire {

inline constexpr std::size_t kLengthBytes = 4;

std::uint32_t big_endian(std::string_view bytes);  // of the first four
std::string in_big_endian(std::size_t number);

// The first of the strings that follow each other, which is taken from them.
std::optional<std::string_view> next_string(std::string_view& bytes);

// The public key that a certificate is of: PROTOCOL.certkeys of OpenSSH puts a nonce before its numbers, and more
// behind them. Any other key is itself.
std::string plain_key(std::string_view key);

}  // namespace monarch::ssh_wire
