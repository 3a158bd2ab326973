#include "transport/base/base64.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

// The vectors of RFC 4648, section 10.
TEST(Base64, IsThatOfTheStandard) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, KeepsEveryByte) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  for (std::size_t size : {254U, 255U, 256U})
    EXPECT_EQ(from_base64(to_base64(all.substr(0, size))), all.substr(0, size));
}

TEST(Base64, IsReadOverLinesAndRefusedWhereItIsNone) {
  EXPECT_EQ(from_base64(" Zm9v\n\tYmFy\r\n"), "foobar");
  for (const char* wrong : {"Z", "Zg=", "Zg", "Zm=v", "====", "Zm9v!", "Z===", "Zg==Zg=="}) {
    EXPECT_EQ(from_base64(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace monarch
