// AES-256-GCM of OpenSSL's libcrypto: GCM by its modes (openssl/modes.h), over its code for processors that have AES.
//
// WARNING: the usual way to it (EVP_EncryptInit(3)) would bring all ciphers of libcrypto into the worker, 4.5 MB and
// half a MiB of memory in each process, and have it read its configuration from the disk of the host
// (OPENSSL_init_crypto(3)). These three functions are in no header: their names have been the same since 1.0.1, a build
// looks for them (meson.build), and what they make is compared with what libsodium makes before they are used
// (BodyCipher::make).

#include <openssl/aes.h>
#include <openssl/modes.h>

#include <utility>

#include "transport/base/assert.h"
#include "transport/peers/body_cipher.h"

extern "C" {
int aesni_set_encrypt_key(const unsigned char* key, int bits, AES_KEY* expanded);
void aesni_encrypt(const unsigned char* in, unsigned char* out, const void* expanded);
void aesni_ctr32_encrypt_blocks(const unsigned char* in, unsigned char* out, std::size_t blocks, const void* expanded,
                                const unsigned char* counter);
}

namespace monarch {

namespace {

struct EndGcm {
  void operator()(GCM128_CONTEXT* gcm) const { ::CRYPTO_gcm128_release(gcm); }
};

const unsigned char* openssl_bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

class OpensslCipher final : public BodyCipher {
 public:
  explicit OpensslCipher(const AES_KEY& expanded)
      : expanded_(expanded), gcm_(::CRYPTO_gcm128_new(&expanded_, &::aesni_encrypt)) {
    MONARCH_ASSERT(gcm_ != nullptr);
  }

  void seal(const BodyNonce& nonce, std::string_view header, std::string_view plain, char* into) override {
    auto* const out = reinterpret_cast<unsigned char*>(into);
    const bool sealed =
        begin(nonce, header) && ::CRYPTO_gcm128_encrypt_ctr32(gcm_.get(), openssl_bytes(plain), out, plain.size(),
                                                              &::aesni_ctr32_encrypt_blocks) == 0;
    MONARCH_ASSERT(sealed);
    ::CRYPTO_gcm128_tag(gcm_.get(), out + plain.size(), kTagBytes);
  }

  bool open(const BodyNonce& nonce, std::string_view header, std::string_view sealed, char* into) override {
    if (sealed.size() < kTagBytes) return false;
    const std::string_view text = sealed.substr(0, sealed.size() - kTagBytes);
    return begin(nonce, header) &&
           ::CRYPTO_gcm128_decrypt_ctr32(gcm_.get(), openssl_bytes(text), reinterpret_cast<unsigned char*>(into),
                                         text.size(), &::aesni_ctr32_encrypt_blocks) == 0 &&
           ::CRYPTO_gcm128_finish(gcm_.get(), openssl_bytes(sealed) + text.size(), kTagBytes) == 0;
  }

 private:
  bool begin(const BodyNonce& nonce, std::string_view header) {
    ::CRYPTO_gcm128_setiv(gcm_.get(), nonce.data(), nonce.size());
    return ::CRYPTO_gcm128_aad(gcm_.get(), openssl_bytes(header), header.size()) == 0;
  }

  AES_KEY expanded_;
  const std::unique_ptr<GCM128_CONTEXT, EndGcm> gcm_;
};

}  // namespace

std::unique_ptr<BodyCipher> BodyCipher::openssl(const BodyKey& key) {
  AES_KEY expanded{};
  constexpr int kBits = 256;
  if (!has_aes() || ::aesni_set_encrypt_key(key.data(), kBits, &expanded) != 0) return nullptr;
  return std::make_unique<OpensslCipher>(expanded);
}

}  // namespace monarch
