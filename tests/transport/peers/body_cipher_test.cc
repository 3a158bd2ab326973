// What seals the pieces of bodies: the two that know AES make the same bytes.

#include "transport/peers/body_cipher.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace monarch {
namespace {

BodyKey key_of(unsigned char first) {
  BodyKey key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<unsigned char>(first + i);
  return key;
}

std::string plain_of(std::size_t size) {
  std::string plain(size, '\0');
  for (std::size_t i = 0; i < size; ++i) plain[i] = static_cast<char>(i * 37 + (i >> 9U));
  return plain;
}

std::string sealed_by(BodyCipher& cipher, const BodyNonce& nonce, std::string_view header, const std::string& plain) {
  std::string sealed(plain.size() + BodyCipher::kTagBytes, '?');
  cipher.seal(nonce, header, plain, sealed.data());
  return sealed;
}

class BodyCipherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!BodyCipher::has_aes()) GTEST_SKIP() << "this processor has no AES";
    if (BodyCipher::openssl(key_of(1)) == nullptr) GTEST_SKIP() << "this build has no OpenSSL";
  }
};

TEST_F(BodyCipherTest, MakesTheSameBytesByOpensslAndByLibsodium) {
  const auto openssl = BodyCipher::openssl(key_of(3));
  const auto sodium = BodyCipher::sodium_aes(key_of(3));
  unsigned char count = 0;
  for (const std::size_t size : std::vector<std::size_t>{0, 1, 15, 16, 17, 4'095, (256U << 10U) - 1, 256U << 10U}) {
    const BodyNonce nonce{++count};
    const std::string plain = plain_of(size);
    const std::string sealed = sealed_by(*openssl, nonce, "12345678", plain);
    ASSERT_EQ(sealed, sealed_by(*sodium, nonce, "12345678", plain)) << size;
    for (BodyCipher* const one : {openssl.get(), sodium.get()}) {
      std::string opened(size, '?');
      EXPECT_TRUE(one->open(nonce, "12345678", sealed, opened.data())) << size;
      EXPECT_EQ(opened, plain);
    }
  }
}

TEST_F(BodyCipherTest, OpensNothingThatIsNotWhatWasSealed) {
  const std::string plain = plain_of(1'000);
  const BodyNonce nonce{7};
  const auto seals = BodyCipher::openssl(key_of(3));
  const std::string sealed = sealed_by(*seals, nonce, "12345678", plain);
  const auto opens = [&](unsigned char key, const BodyNonce& its, std::string_view header, const std::string& text) {
    std::string into(plain.size() + BodyCipher::kTagBytes, '?');
    return BodyCipher::openssl(key_of(key))->open(its, header, text, into.data());
  };
  EXPECT_TRUE(opens(3, nonce, "12345678", sealed));
  EXPECT_FALSE(opens(4, nonce, "12345678", sealed)) << "another key";
  EXPECT_FALSE(opens(3, BodyNonce{8}, "12345678", sealed)) << "another nonce";
  EXPECT_FALSE(opens(3, nonce, "12345679", sealed)) << "another header";
  for (const std::size_t at : {std::size_t{0}, plain.size() - 1, plain.size(), sealed.size() - 1}) {
    std::string changed = sealed;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(opens(3, nonce, "12345678", changed)) << at;
  }
  EXPECT_FALSE(opens(3, nonce, "12345678", sealed.substr(0, 15))) << "shorter than a tag";
}

// It goes on after a piece that was none, as with a new one.
TEST_F(BodyCipherTest, IsAsBeforeAfterAPieceThatWasNone) {
  const auto cipher = BodyCipher::openssl(key_of(3));
  const std::string plain = plain_of(500);
  const std::string sealed = sealed_by(*cipher, BodyNonce{1}, "12345678", plain);
  std::string into(plain.size(), '?');
  EXPECT_FALSE(cipher->open(BodyNonce{2}, "12345678", sealed, into.data()));
  EXPECT_TRUE(cipher->open(BodyNonce{1}, "12345678", sealed, into.data()));
  EXPECT_EQ(into, plain);
}

}  // namespace
}  // namespace monarch
