#include "transport/zmq/curve.h"

#include <string.h>  // NOLINT(modernize-deprecated-headers): explicit_bzero
#include <sys/mman.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kZ85Alphabet =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
constexpr std::size_t kPage = 4096;

using KeyBytes = std::array<std::uint8_t, kCurveKeyBytes>;
using KeyText = std::array<char, kCurveTextBytes + 1>;

std::string_view view(const KeyBytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Says nothing about the text: it may be a secret.
Result<KeyBytes> decode(std::string_view z85) {
  if (z85.size() != kCurveTextBytes) {
    return Error{ErrorCode::kInvalid, text("a CURVE key has ", kCurveTextBytes, " characters, not ", z85.size())};
  }
  const std::size_t odd = z85.find_first_not_of(kZ85Alphabet);
  if (odd != std::string_view::npos) {
    return Error{ErrorCode::kInvalid, text("character ", odd + 1, " of a CURVE key is not of the z85 alphabet")};
  }
  KeyText terminated{};
  std::copy(z85.begin(), z85.end(), terminated.begin());
  KeyBytes bytes{};
  const bool decoded = zmq_z85_decode(bytes.data(), terminated.data()) != nullptr;
  ::explicit_bzero(terminated.data(), terminated.size());
  // Five characters can write a number above 2^32.
  if (!decoded) return Error{ErrorCode::kInvalid, "a CURVE key holds a number that no four bytes can"};
  return bytes;
}

}  // namespace

Result<CurvePublicKey> CurvePublicKey::parse(std::string_view z85) {
  MONARCH_ASSIGN(const KeyBytes bytes, decode(z85));
  return CurvePublicKey(bytes);
}

Result<CurvePublicKey> CurvePublicKey::from_bytes(std::string_view bytes) {
  if (bytes.size() != kCurveKeyBytes) {
    return Error{ErrorCode::kInvalid, text("a CURVE key has ", kCurveKeyBytes, " bytes, not ", bytes.size())};
  }
  CurvePublicKey key;
  std::memcpy(key.bytes_.data(), bytes.data(), bytes.size());
  return key;
}

std::string CurvePublicKey::to_text() const {
  KeyText z85{};
  MONARCH_ASSERT(zmq_z85_encode(z85.data(), bytes_.data(), bytes_.size()) != nullptr);
  return {z85.data(), kCurveTextBytes};
}

std::string_view CurvePublicKey::bytes() const { return view(bytes_); }

Result<CurveSecretKey> CurveSecretKey::from_bytes(std::string_view bytes) {
  if (bytes.size() != kCurveKeyBytes) {
    return Error{ErrorCode::kInvalid, text("a CURVE key has ", kCurveKeyBytes, " bytes, not ", bytes.size())};
  }
  void* page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return errno_error("a page for a secret key", errno);
  // Both are best effort: a core dump must be off anyway, and RLIMIT_MEMLOCK may be 0.
  (void)::madvise(page, kPage, MADV_DONTDUMP);
  (void)::mlock(page, kPage);
  std::memcpy(page, bytes.data(), bytes.size());
  return CurveSecretKey(page);
}

Result<CurveSecretKey> CurveSecretKey::parse(std::string_view z85) {
  MONARCH_ASSIGN(KeyBytes bytes, decode(z85));
  auto secret = from_bytes(view(bytes));
  ::explicit_bzero(bytes.data(), bytes.size());
  return secret;
}

CurveSecretKey::~CurveSecretKey() {
  if (page_ == nullptr) return;
  ::explicit_bzero(page_, kCurveKeyBytes);
  MONARCH_ASSERT(::munmap(page_, kPage) == 0);
}

CurveSecretKey::CurveSecretKey(CurveSecretKey&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}

CurveSecretKey& CurveSecretKey::operator=(CurveSecretKey&& other) noexcept {
  std::swap(page_, other.page_);
  return *this;
}

std::string_view CurveSecretKey::bytes() const {
  MONARCH_ASSERT(page_ != nullptr);
  return {static_cast<const char*>(page_), kCurveKeyBytes};
}

std::string CurveSecretKey::text_for_file() const {
  KeyText z85{};
  MONARCH_ASSERT(zmq_z85_encode(z85.data(), reinterpret_cast<const std::uint8_t*>(bytes().data()), kCurveKeyBytes) !=
                 nullptr);
  std::string text(z85.data(), kCurveTextBytes);
  ::explicit_bzero(z85.data(), z85.size());
  return text;
}

Result<CurveKeyPair> make_curve_key_pair() {
  KeyText public_text{};
  KeyText secret_text{};
  if (zmq_curve_keypair(public_text.data(), secret_text.data()) != 0) {
    return Error{ErrorCode::kUnsupported, text("making a CURVE key pair: ", zmq_strerror(errno))};
  }
  auto secret = CurveSecretKey::parse({secret_text.data(), kCurveTextBytes});
  ::explicit_bzero(secret_text.data(), secret_text.size());
  if (!secret) return std::move(secret).error();
  MONARCH_ASSIGN(CurvePublicKey public_key, CurvePublicKey::parse({public_text.data(), kCurveTextBytes}));
  return CurveKeyPair{public_key, std::move(secret).value()};
}

Result<CurveKeyPair> curve_key_pair_of(CurveSecretKey secret) {
  KeyText secret_text{};
  KeyText public_text{};
  MONARCH_ASSERT(zmq_z85_encode(secret_text.data(), reinterpret_cast<const std::uint8_t*>(secret.bytes().data()),
                                kCurveKeyBytes) != nullptr);
  const int derived = zmq_curve_public(public_text.data(), secret_text.data());
  ::explicit_bzero(secret_text.data(), secret_text.size());
  if (derived != 0) return Error{ErrorCode::kInvalid, text("deriving a public key: ", zmq_strerror(errno))};
  MONARCH_ASSIGN(CurvePublicKey public_key, CurvePublicKey::parse({public_text.data(), kCurveTextBytes}));
  return CurveKeyPair{public_key, std::move(secret)};
}

}  // namespace monarch
