#include "transport/wire/host_socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <utility>

#include "transport/base/socket_address.h"

namespace monarch {
namespace {

// Bound and not listened at, as a keeper has a port that it reserves for a rank.
UniqueFd reserve(std::uint16_t port) {
  UniqueFd socket = make_stream_socket(AF_INET).value();
  const int on = 1;
  EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_ANY);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) return {};
  return socket;
}

// So many free ports in a row, from the first on.
std::uint16_t free_ports(int count) {
  for (std::uint16_t first = 21'000; first < 30'000; first = static_cast<std::uint16_t>(first + count)) {
    bool all = true;
    for (int i = 0; i < count; ++i) all = all && is_free(static_cast<std::uint16_t>(first + i));
    if (all) return first;
  }
  ADD_FAILURE() << "no free ports";
  return 0;
}

TEST(HostSocket, ListensAtTheHighestPortThatNobodyHas) {
  const std::uint16_t first = free_ports(4);
  const auto last = static_cast<std::uint16_t>(first + 3);
  const UniqueFd reserved = reserve(last);
  ASSERT_TRUE(reserved.valid());
  EXPECT_FALSE(is_free(last));
  const auto listener = listen_for_hosts("127.0.0.1", first, last, "tests");
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  EXPECT_EQ(listener->port, last - 1);
  const auto other = listen_for_hosts("127.0.0.1", first, last, "tests");
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->port, last - 2);
}

TEST(HostSocket, SaysWhichPortsAreTaken) {
  const std::uint16_t only = free_ports(1);
  const auto listener = listen_for_hosts("127.0.0.1", only, only, "tests");
  ASSERT_TRUE(listener.ok());
  const auto second = listen_for_hosts("127.0.0.1", only, only, "tests");
  ASSERT_FALSE(second.ok());
  const std::string port = std::to_string(only);
  EXPECT_EQ(second.error().message,
            "listening for tests at 127.0.0.1 ports " + port + " to " + port + ": Address already in use");
  EXPECT_EQ(listen_for_hosts("here", 0, 0, "tests").error().message, "`here` is no numeric address");
}

TEST(HostSocket, ConnectsAndHearsThatNobodyIsThere) {
  auto listener = listen_for_hosts("127.0.0.1", 0, 0, "tests").value();
  ASSERT_GT(listener.port, 0);
  const UniqueFd there = connect_to_host("127.0.0.1", listener.port).value();
  while (!connected(there).value()) continue;
  EXPECT_TRUE(accept_host(listener.socket).value().valid());
  EXPECT_EQ(accept_host(listener.socket).error().errno_value, EAGAIN);
  listener.socket.reset();
  auto nobody = connect_to_host("127.0.0.1", listener.port);
  Result<bool> done = false;
  while (nobody.ok() && done.ok() && !*done) done = connected(*nobody);
  EXPECT_EQ(nobody.ok() ? done.error().code : nobody.error().code, ErrorCode::kGone);
}

}  // namespace
}  // namespace monarch
