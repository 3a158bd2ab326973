#pragma once

// BodyCipher: what the pieces of one direction of a connection for bodies are sealed by, and opened: AES-256-GCM where
// the processor has it, else ChaCha20-Poly1305. OpenSSL's AES is nearly twice as fast as libsodium's; both make the
// same bytes, so either end may have either.
//
// Thread: one. Lifetime: its own.

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>

namespace monarch {

using BodyKey = std::array<unsigned char, 32>;
using BodyNonce = std::array<unsigned char, 12>;

class BodyCipher {
 public:
  static constexpr std::size_t kTagBytes = 16;  // a sealed piece is so much longer

  // Whether this processor has AES-256-GCM.
  static bool has_aes();
  static std::unique_ptr<BodyCipher> make(const BodyKey& key, bool with_aes);
  // The two of AES. nullptr: it is not there.
  static std::unique_ptr<BodyCipher> openssl(const BodyKey& key);
  static std::unique_ptr<BodyCipher> sodium_aes(const BodyKey& key);

  BodyCipher() = default;
  BodyCipher(const BodyCipher&) = delete;
  BodyCipher& operator=(const BodyCipher&) = delete;
  virtual ~BodyCipher() = default;

  // `header` goes in the clear, and is vouched for. A nonce is used once with a key.
  virtual void seal(const BodyNonce& nonce, std::string_view header, std::string_view plain, char* into) = 0;
  // False: it is not what was sealed so. What stands at `into` then is nothing.
  virtual bool open(const BodyNonce& nonce, std::string_view header, std::string_view sealed, char* into) = 0;
};

}  // namespace monarch
