#include "transport/wire/bound_port.h"

#include <gtest/gtest.h>

#include "transport/wire/host_socket.h"

namespace monarch {

TEST(BoundPort, IsNobodyElsesButCanBeListenedAt) {
  const auto held = bind_free_port(0, 0);
  ASSERT_TRUE(held.ok()) << held.error().message;
  EXPECT_FALSE(is_free(held->number));
  const auto again = bind_free_port(held->number, held->number);
  ASSERT_FALSE(again.ok()) << "two hold one port";
  EXPECT_EQ(again.error().code, ErrorCode::kBusy);
  const auto there = listen_for_hosts("127.0.0.1", held->number, held->number, "a store");
  ASSERT_TRUE(there.ok()) << there.error().message;
  EXPECT_EQ(there->port, held->number);
}

TEST(BoundPort, IsTheHighestFreeOneOfARange) {
  std::uint16_t last = 0;
  for (int tries = 0; tries < 20; ++tries) {
    const auto held = bind_free_port(0, 0);
    ASSERT_TRUE(held.ok());
    last = held->number;
    if (last > 2 && is_free(static_cast<std::uint16_t>(last - 1))) {
      const auto below = bind_free_port(static_cast<std::uint16_t>(last - 1), last);
      ASSERT_TRUE(below.ok()) << below.error().message;
      EXPECT_EQ(below->number, last - 1);
      return;
    }
  }
  FAIL() << "no two neighbouring ports are free, near " << last;
}

}  // namespace monarch
