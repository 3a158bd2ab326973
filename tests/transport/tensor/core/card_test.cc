// Cards: there and back, and what is none.

#include "transport/tensor/core/card.h"

#include <gtest/gtest.h>

#include <string>

#include "transport/base/limits.h"

namespace monarch::tensor {
namespace {

Card some_card() {
  Card card{.machine = "0d5c3a9e-7a53-4ad4-9c7b-3f5d9d7a7c11",
            .path = "/run/user/1000/monarch-1000/w-3f1c/tensors-trainer-7",
            .address = "10.0.0.7",
            .port = 42'001,
            .secret = {}};
  for (std::size_t i = 0; i < card.secret.size(); ++i) card.secret[i] = static_cast<unsigned char>(i * 9);
  return card;
}

TEST(Card, IsReadAsItIsWritten) {
  const std::string text = card_text(some_card());
  EXPECT_LT(text.size(), limits::kCardBytes / 2) << "two of them are together no more than a rank may put";
  EXPECT_EQ(*parse_card(text), some_card());
  EXPECT_EQ(*parse_card(text + "later=1\n"), some_card());
  Card here = some_card();
  here.address.clear();
  here.port = 0;
  EXPECT_EQ(*parse_card(card_text(here)), here);
}

TEST(Card, IsNoneWhereAnythingIsMissing) {
  const std::string text = card_text(some_card());
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto card = parse_card(text.substr(0, size));
    ASSERT_FALSE(card.ok()) << size;
    EXPECT_EQ(card.error().message, "a card that is none") << "nothing of it is shown";
  }
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    return parse_card(other).ok();
  };
  EXPECT_FALSE(changed("card=1", "card=2"));
  EXPECT_FALSE(changed("port=42001", "port=65536"));
  EXPECT_FALSE(changed("port=42001", "port=0"));
  EXPECT_FALSE(changed("port=42001", "port=1 "));
  EXPECT_FALSE(changed("address=10.0.0.7", "address="));
  EXPECT_FALSE(changed("secret=00", "secret=0x"));
  EXPECT_FALSE(changed("machine=", "path="));
  EXPECT_FALSE(parse_card(text + std::string(limits::kCardBytes, 'x') + "=\n").ok());
}

}  // namespace
}  // namespace monarch::tensor
