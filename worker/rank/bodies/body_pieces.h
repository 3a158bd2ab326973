#pragma once

// BodyPieces: the bytes of a body where they lie, piece by piece: they are copied once, to where they are read.
//
// Thread: values. Lifetime: that of the bytes, and of the list of pieces.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <monarch/plugin_v1.h>

namespace monarch {

class BodyPieces {
 public:
  BodyPieces() = default;
  BodyPieces(std::string_view whole) : one_{whole.data(), whole.size()} {}       // NOLINT: it is the same
  BodyPieces(const std::string& whole) : BodyPieces(std::string_view(whole)) {}  // NOLINT: it is the same
  BodyPieces(const char* text) : BodyPieces(std::string_view(text)) {}           // NOLINT: it is the same
  BodyPieces(const monarch_bytes_v1* pieces, std::size_t count) : pieces_(pieces), count_(count) {}

  const monarch_bytes_v1* begin() const { return pieces_ != nullptr ? pieces_ : &one_; }
  const monarch_bytes_v1* end() const { return begin() + (pieces_ != nullptr ? count_ : 1); }
  std::uint64_t bytes() const {
    std::uint64_t bytes = 0;
    for (const monarch_bytes_v1& piece : *this) bytes += piece.size;
    return bytes;
  }
  void copy_to(char* to) const {
    for (const monarch_bytes_v1& piece : *this) {
      if (piece.size > 0) std::memcpy(to, piece.data, piece.size);
      to += piece.size;
    }
  }
  std::string joined() const {
    std::string whole;
    whole.reserve(bytes());
    for (const monarch_bytes_v1& piece : *this) whole.append(static_cast<const char*>(piece.data), piece.size);
    return whole;
  }

 private:
  monarch_bytes_v1 one_{"", 0};
  const monarch_bytes_v1* pieces_ = nullptr;  // nullptr: it is in one
  std::size_t count_ = 0;
};

}  // namespace monarch
