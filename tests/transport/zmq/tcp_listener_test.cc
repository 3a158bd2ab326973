#include "transport/zmq/tcp_listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "transport/base/socket_address.h"
#include "transport/zmq/listener_door.h"

namespace monarch {
namespace {

UniqueFd dial(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress place = socket_address("127.0.0.1", port);
  if (::connect(fd.get(), place.get(), place.size) != 0) return UniqueFd();
  return fd;
}

TEST(TcpListener, HasWhoConnectsWaitUntilSomebodyAccepts) {
  const auto listener = listen_at("127.0.0.1", {});
  ASSERT_TRUE(listener.ok());
  const std::uint16_t port = port_of(listener->get());
  EXPECT_TRUE(ListenerDoor::listens_at(listener->get(), port));
  const UniqueFd early = dial(port);
  ASSERT_TRUE(early.valid());
  ASSERT_EQ(::write(early.get(), "x", 1), 1) << "it is connected";
  const UniqueFd accepted(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(accepted.valid());
}

TEST(TcpListener, IsClosedInChildrenAndWaitsForNobody) {
  const auto listener = listen_at("127.0.0.1", {});
  ASSERT_TRUE(listener.ok());
  EXPECT_NE(::fcntl(listener->get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(::fcntl(listener->get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(TcpListener, SaysWhichPlaceIsTaken) {
  const auto first = listen_at("127.0.0.1", {});
  ASSERT_TRUE(first.ok());
  const std::uint16_t taken = port_of(first->get());
  const auto none = listen_at("127.0.0.1", {taken, taken});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kBusy);
  const std::string range = std::to_string(taken) + "-" + std::to_string(taken);
  EXPECT_EQ(none.error().message, "every port of 127.0.0.1:" + range + " is taken");
  const auto last = static_cast<std::uint16_t>(std::min(taken + 20, 65'535));
  const auto next = listen_at("127.0.0.1", {taken, last});
  ASSERT_TRUE(next.ok());
  EXPECT_GT(port_of(next->get()), taken);
}

TEST(TcpListener, SaysWhichPlaceIsNotOurs) {
  const auto elsewhere = listen_at("192.0.2.1", {});  // RFC 5737: nobody's
  ASSERT_FALSE(elsewhere.ok());
  EXPECT_EQ(elsewhere.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(elsewhere.error().message, "binding tcp://192.0.2.1:*: Cannot assign requested address");
  EXPECT_EQ(listen_at("localhost", {}).error().code, ErrorCode::kInvalid);
}

TEST(TcpListener, HearsBothKindsOfAddressEverywhere) {
  const auto listener = listen_at("::", {});
  if (!listener.ok()) GTEST_SKIP() << "needs IPv6: " << listener.error().message;
  const std::uint16_t port = port_of(listener->get());
  EXPECT_TRUE(dial(port).valid());
}

}  // namespace
}  // namespace monarch
