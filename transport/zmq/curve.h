#pragma once

// CURVE keys. The public half is text that may be shown and stored; the secret half lives in a page of its own that
// core dumps leave out, is wiped when it is dropped, and has no way to be printed. libzmq keeps its own copy of a
// secret as long as a socket lives: a process that holds keys has to refuse core dumps altogether.
//
// Thread: values; a secret is moved, never shared.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "transport/base/result.h"

namespace monarch {

inline constexpr std::size_t kCurveKeyBytes = 32;
inline constexpr std::size_t kCurveTextBytes = 40;  // z85

class CurvePublicKey {
 public:
  CurvePublicKey() = default;
  explicit CurvePublicKey(const std::array<std::uint8_t, kCurveKeyBytes>& bytes) : bytes_(bytes) {}
  static Result<CurvePublicKey> parse(std::string_view z85);
  // Exactly 32 bytes, as ZAP passes them.
  static Result<CurvePublicKey> from_bytes(std::string_view bytes);

  std::string to_text() const;  // z85, 40 characters
  std::string_view bytes() const;
  auto operator<=>(const CurvePublicKey&) const = default;

 private:
  std::array<std::uint8_t, kCurveKeyBytes> bytes_{};
};

class CurveSecretKey {
 public:
  // Copies the 32 bytes; the caller wipes its own.
  static Result<CurveSecretKey> from_bytes(std::string_view bytes);
  static Result<CurveSecretKey> parse(std::string_view z85);
  ~CurveSecretKey();
  CurveSecretKey(CurveSecretKey&& other) noexcept;
  CurveSecretKey& operator=(CurveSecretKey&& other) noexcept;
  CurveSecretKey(const CurveSecretKey&) = delete;
  CurveSecretKey& operator=(const CurveSecretKey&) = delete;

  // For a sealed memfd, a key file of mode 0600, or libzmq; nothing else.
  std::string_view bytes() const;
  // z85, as parse() takes it: for a file of mode 0600 that other machines of the same user read.
  std::string text_for_file() const;

 private:
  explicit CurveSecretKey(void* page) : page_(page) {}
  void* page_ = nullptr;
};

struct CurveKeyPair {
  CurvePublicKey public_key;
  CurveSecretKey secret_key;
};

Result<CurveKeyPair> make_curve_key_pair();
// The pair of a secret that was kept.
Result<CurveKeyPair> curve_key_pair_of(CurveSecretKey secret);

}  // namespace monarch
