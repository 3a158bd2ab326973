// The address by which others reach this host.

#include "worker/daemon/own_address.h"

#include <gtest/gtest.h>

namespace monarch::daemon {
namespace {

TEST(OwnAddress, IsThatOfTheWayToTheOther) {
  EXPECT_EQ(own_address("127.0.0.1", 9), "127.0.0.1");
  EXPECT_EQ(own_address("head", 9), "") << "no names are looked up";
}

TEST(InterfaceAddress, IsNumeric) {
  const auto address = interface_address("lo");
  ASSERT_TRUE(address.ok()) << address.error().message;
  EXPECT_EQ(*address, "127.0.0.1");
}

TEST(InterfaceAddress, NamesWhatThereIsWhereThereIsNone) {
  const auto address = interface_address("nosuch0");
  ASSERT_FALSE(address.ok());
  EXPECT_EQ(address.error().code, ErrorCode::kNotFound);
  EXPECT_NE(address.error().message.find("network.interface is nosuch0"), std::string::npos) << address.error().message;
  EXPECT_NE(address.error().message.find("lo (127.0.0.1)"), std::string::npos) << address.error().message;
}

}  // namespace
}  // namespace monarch::daemon
