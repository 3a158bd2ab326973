#include "transport/base/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace monarch {
namespace {

// The examples of FIPS 180-4.
TEST(Sha256, AnswersAsTheStandardSays) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsTheSameHoweverTheBytesCome) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes += static_cast<char>(i);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const std::string whole = sha256(bytes.substr(0, size));
    Sha256 hash;
    for (std::size_t i = 0; i < size; ++i) hash.add({&bytes[i], 1});
    EXPECT_EQ(hash.finish(), whole) << size;
  }
}

}  // namespace
}  // namespace monarch
