#pragma once

// Integers as little-endian bytes.
//
// Thread: any.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace monarch::little_endian {

template <class Int>
void put(std::string& out, Int value) {
  auto bits = static_cast<std::make_unsigned_t<Int>>(value);
  for (std::size_t i = 0; i < sizeof(Int); ++i) {
    out.push_back(static_cast<char>(static_cast<unsigned char>((static_cast<std::uint64_t>(bits) >> (8 * i)) & 0xFFU)));
  }
}

template <class Int>
std::string bytes(Int value) {
  std::string out;
  put(out, value);
  return out;
}

// The caller has checked that sizeof(Int) bytes are there at `offset`.
template <class Int>
Int get(std::string_view bytes, std::size_t offset) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < sizeof(Int); ++i) {
    bits |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i);
  }
  return static_cast<Int>(bits);
}

}  // namespace monarch::little_endian
