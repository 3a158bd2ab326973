#include "worker/keeper/port_holder.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/worker/keeper/made_up_host.h"
#include "transport/base/unique_fd.h"

namespace monarch {
namespace {

constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1F90 0100007F:D431 06 00000000:00000000 03:00000F4B 00000000     0        0 0 3 0000000000000000\n"
    "   1: 0100007F:1F90 0100007F:D432 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0\n"
    "   2: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0\n"
    "   3: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0\n";

TEST(SocketInodeOfPort, IsThatOfTheListenerBeforeItsConnections) {
  EXPECT_EQ(socket_inode_of_port(kTable, 8080), 4712U);
  EXPECT_EQ(socket_inode_of_port(kTable, 22), 4713U);
  EXPECT_EQ(socket_inode_of_port(kTable, 54321), 0U) << "that is a peer's";
  EXPECT_EQ(socket_inode_of_port("", 22), 0U);
  EXPECT_EQ(socket_inode_of_port("nonsense\n 1: 2 3\n", 22), 0U);
}

class PortHolderFiles : public MadeUpHost {};

TEST_F(PortHolderFiles, NameTheProcessThatHasTheSocketOpen) {
  file("/net/tcp", std::string(kTable));
  file("/17/comm", "sshd\n");
  file("/23/comm", "python3\n");
  std::filesystem::create_directories(root_ + "/17/fd");
  std::filesystem::create_directories(root_ + "/23/fd");
  std::filesystem::create_symlink("socket:[4713]", root_ + "/17/fd/3");
  std::filesystem::create_symlink("/dev/null", root_ + "/23/fd/0");
  std::filesystem::create_symlink("socket:[4712]", root_ + "/23/fd/9");
  const auto holder = holder_of_port(8080, root_);
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->pid, 23);
  EXPECT_EQ(holder->program, "python3");
  EXPECT_FALSE(holder_of_port(9999, root_));
}

TEST(PortHolder, OfAPortThatThisTestListensOnIsThisTest) {
  const UniqueFd listener(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::listen(listener.get(), 1), 0);  // on a port of the kernel's choice
  sockaddr_in6 address{};
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const auto holder = holder_of_port(ntohs(address.sin6_port));
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->pid, ::getpid());
}

}  // namespace
}  // namespace monarch
