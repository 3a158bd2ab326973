#include "transport/peers/body_cipher.h"

#include <sodium.h>

#include <string>

#include "transport/base/assert.h"

namespace monarch {

namespace {

static_assert(crypto_aead_aes256gcm_ABYTES == BodyCipher::kTagBytes &&
              crypto_aead_chacha20poly1305_ietf_ABYTES == BodyCipher::kTagBytes);
static_assert(crypto_aead_aes256gcm_NPUBBYTES == BodyNonce().size() &&
              crypto_aead_chacha20poly1305_ietf_NPUBBYTES == BodyNonce().size());
static_assert(crypto_aead_aes256gcm_KEYBYTES == BodyKey().size() &&
              crypto_aead_chacha20poly1305_ietf_KEYBYTES == BodyKey().size());

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

class SodiumCipher final : public BodyCipher {
 public:
  SodiumCipher(const BodyKey& key, bool with_aes) : key_(key), with_aes_(with_aes) {}

  void seal(const BodyNonce& nonce, std::string_view header, std::string_view plain, char* into) override {
    unsigned long long size = 0;
    const auto encrypt = with_aes_ ? &::crypto_aead_aes256gcm_encrypt : &::crypto_aead_chacha20poly1305_ietf_encrypt;
    const int failed = encrypt(reinterpret_cast<unsigned char*>(into), &size, bytes_of(plain), plain.size(),
                               bytes_of(header), header.size(), nullptr, nonce.data(), key_.data());
    MONARCH_ASSERT(failed == 0 && size == plain.size() + kTagBytes);
  }

  bool open(const BodyNonce& nonce, std::string_view header, std::string_view sealed, char* into) override {
    unsigned long long opened = 0;
    const auto decrypt = with_aes_ ? &::crypto_aead_aes256gcm_decrypt : &::crypto_aead_chacha20poly1305_ietf_decrypt;
    return decrypt(reinterpret_cast<unsigned char*>(into), &opened, nullptr, bytes_of(sealed), sealed.size(),
                   bytes_of(header), header.size(), nonce.data(), key_.data()) == 0 &&
           opened + kTagBytes == sealed.size();
  }

 private:
  const BodyKey key_;
  const bool with_aes_;
};

// Whether OpenSSL's is there, and makes what libsodium's makes.
bool has_openssl() {
  const BodyKey key{1, 2, 3};
  const BodyNonce nonce{4, 5, 6};
  const std::string plain(1'000, 'p');
  std::array<std::string, 2> sealed;
  const auto seal = [&](const std::unique_ptr<BodyCipher>& cipher, std::string& into) {
    if (cipher == nullptr) return;
    into.resize(plain.size() + BodyCipher::kTagBytes);
    cipher->seal(nonce, "header", plain, into.data());
  };
  seal(BodyCipher::openssl(key), sealed[0]);
  seal(BodyCipher::sodium_aes(key), sealed[1]);
  return !sealed[0].empty() && sealed[0] == sealed[1];
}

}  // namespace

bool BodyCipher::has_aes() { return ::sodium_init() >= 0 && ::crypto_aead_aes256gcm_is_available() == 1; }

std::unique_ptr<BodyCipher> BodyCipher::sodium_aes(const BodyKey& key) {
  return has_aes() ? std::make_unique<SodiumCipher>(key, true) : nullptr;
}

std::unique_ptr<BodyCipher> BodyCipher::make(const BodyKey& key, bool with_aes) {
  MONARCH_ASSERT(::sodium_init() >= 0 && (!with_aes || has_aes()));
  if (!with_aes) return std::make_unique<SodiumCipher>(key, false);
  return has_openssl() ? openssl(key) : sodium_aes(key);
}

}  // namespace monarch
