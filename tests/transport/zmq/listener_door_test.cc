#include "transport/zmq/listener_door.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "tests/transport/base/lower_limit.h"

namespace monarch {
namespace {

class ListenerDoorTest : public testing::Test {
 protected:
  void SetUp() override {
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // as libzmq makes it
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
    socklen_t size = sizeof address_;
    ASSERT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address_), &size), 0);
    ASSERT_EQ(::listen(listener_.get(), 16), 0);
  }

  // On loopback a connection is made, or its first packet dropped, within the call.
  UniqueFd dial() {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int done = ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address_), sizeof address_);
    EXPECT_TRUE(done == 0 || errno == EINPROGRESS);
    return socket;
  }

  static int state(const UniqueFd& socket) {
    tcp_info info{};
    socklen_t size = sizeof info;
    EXPECT_EQ(::getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return info.tcpi_state;
  }

  UniqueFd accept() const { return UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

  UniqueFd listener_;
  sockaddr_in address_{};
};

TEST_F(ListenerDoorTest, TakesNobodyWhileItIsClosedAndKeepsWhoIsThere) {
  auto door = ListenerDoor::of(listener_.get());
  ASSERT_TRUE(door.ok());
  const UniqueFd early = dial();
  const UniqueFd guest = accept();
  ASSERT_TRUE(guest.valid());
  ASSERT_TRUE(door->close().ok());
  ASSERT_TRUE(door->close().ok());  // again, to no effect
  const UniqueFd late = dial();
  EXPECT_EQ(state(late), TCP_SYN_SENT);
  EXPECT_FALSE(accept().valid());
  ASSERT_EQ(::send(early.get(), "x", 1, MSG_NOSIGNAL), 1);
  char byte = 0;
  EXPECT_EQ(::recv(guest.get(), &byte, 1, 0), 1);
  ASSERT_TRUE(door->open().ok());
  ASSERT_TRUE(door->open().ok());
  // It asks again by itself.
  pollfd wait{.fd = late.get(), .events = POLLOUT, .revents = 0};
  EXPECT_EQ(::poll(&wait, 1, 10'000), 1);
  EXPECT_EQ(state(late), TCP_ESTABLISHED);
}

TEST_F(ListenerDoorTest, TurnsAwayWhoWaits) {
  auto door = ListenerDoor::of(listener_.get());
  ASSERT_TRUE(door.ok());
  const UniqueFd one = dial();
  const UniqueFd two = dial();
  ASSERT_TRUE(door->close().ok());
  EXPECT_EQ(door->turn_away(), 2U);
  EXPECT_FALSE(accept().valid());
  char byte = 0;
  EXPECT_LE(::recv(one.get(), &byte, 1, 0), 0);
  EXPECT_EQ(door->turn_away(), 0U);
}

TEST_F(ListenerDoorTest, TurnsAwayWhoWaitsWhereNoDescriptorIsLeft) {
  auto door = ListenerDoor::of(listener_.get());
  ASSERT_TRUE(door.ok());
  const UniqueFd one = dial();
  const UniqueFd last(::dup(0));
  {
    const LowerLimit full(RLIMIT_NOFILE, static_cast<rlim_t>(last.get()) + 1);
    EXPECT_LT(::dup(0), 0);
    EXPECT_EQ(door->turn_away(), 1U);
  }
  EXPECT_FALSE(accept().valid());
  EXPECT_EQ(::fcntl(last.get(), F_GETFD), 0) << "what others have open stays so";
}

}  // namespace
}  // namespace monarch
