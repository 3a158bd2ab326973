#include "transport/base/text.h"

#include <gtest/gtest.h>

#include <random>

namespace monarch {
namespace {

TEST(Text, WritesItsPartsOneAfterTheOther) {
  EXPECT_EQ(text("rank ", 7, ' ', std::string("on "), std::string_view("v1"), " ", true), "rank 7 on v1 true");
}

TEST(Printable, KeepsTextAndEscapesWhatSteersATerminal) {
  EXPECT_EQ(printable("loss 2.31\tok é 日本"), "loss 2.31\tok é 日本");
  EXPECT_EQ(printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(printable("a\nb\rc"), "a\\x0ab\\x0dc");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");  // CSI as a C1 control
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "gnp"),
            "\\xe2\\x80\\xaegnp");                          // right-to-left override
  EXPECT_EQ(printable("\xc0\xaf\xff"), "\\xc0\\xaf\\xff");  // overlong and not UTF-8 at all
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xe6\x97"), "\\xe6\\x97");           // cut off
}

TEST(XmlText, HasOnlyCharactersThatXmlHas) {
  EXPECT_EQ(xml_text(std::string_view("\0\x01\x1b<\xef\xbf\xbe\xef\xbf\xbf\xed\xa0\x80é\t'", 17)),
            "\\x00\\x01\\x1b&lt;\\uffff\\uffff\\xed\\xa0\\x80é\t&apos;");
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE(text("seed ", seed));
  std::mt19937 random(seed);
  for (int run = 0; run < 2000; ++run) {
    std::string raw(random() % 40, '\0');
    for (char& byte : raw) byte = static_cast<char>(random() % 256);
    for (const char c : xml_text(raw)) {
      const auto byte = static_cast<unsigned char>(c);
      ASSERT_TRUE((byte >= 0x20 || byte == '\t') && byte != 0x7F && c != '<' && c != '>' && c != '"');
    }
  }
}

TEST(AmountText, IsForPeople) {
  EXPECT_EQ(amount_text(0), "0B");
  EXPECT_EQ(amount_text(1023), "1023B");
  EXPECT_EQ(amount_text(1024), "1KiB");
  EXPECT_EQ(amount_text(1536), "1.5KiB");
  EXPECT_EQ(amount_text(10U << 20U), "10MiB");
  EXPECT_EQ(amount_text(1ULL << 30U), "1GiB");
}

}  // namespace
}  // namespace monarch
