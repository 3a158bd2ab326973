#include "worker/daemon/ready_probes.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tests/transport/loop/loop_fixture.h"

namespace monarch::daemon {
namespace {

const Incarnation kKey{{MeshId(0), Rank(3)}, {Term(1), 1}};
const Incarnation kOther{{MeshId(0), Rank(4)}, {Term(1), 1}};

class ReadyProbesTest : public LoopTest {
 protected:
  // Bound and not listening, as a rank's server is before it is ready.
  UniqueFd bound(std::uint16_t& port, const char* numeric = "127.0.0.1") {
    UniqueFd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    EXPECT_EQ(::inet_pton(AF_INET, numeric, &address.sin_addr), 1);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(server.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(server.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
    return server;
  }
  std::unique_ptr<ReadyProbes> probes(std::vector<std::string> addresses) {
    return std::make_unique<ReadyProbes>(loop(), std::move(addresses),
                                         [this](const Incarnation& ready) { ready_.push_back(ready); });
  }
  // What a server would be asked: connections that wait to be accepted.
  static bool asked(const UniqueFd& server) { return UniqueFd(::accept(server.get(), nullptr, nullptr)).valid(); }
  bool wait(Duration time) {
    const Instant end = boot_now() + time;
    return run_until([&] { return boot_now() >= end; });
  }

  std::vector<Incarnation> ready_;
};

TEST_F(ReadyProbesTest, TellOnceThatAPortAccepts) {
  std::uint16_t port = 0;
  const UniqueFd server = bound(port);
  const auto tried = probes({"127.0.0.1"});
  tried->begin(kKey, port);
  tried->begin(kKey, port);
  ASSERT_TRUE(wait(Duration::milliseconds(150)));
  EXPECT_TRUE(ready_.empty()) << "it does not listen";
  ASSERT_EQ(::listen(server.get(), 8), 0);
  ASSERT_TRUE(run_until([&] { return !ready_.empty(); }));
  EXPECT_EQ(ready_, std::vector<Incarnation>{kKey});
  EXPECT_TRUE(asked(server));
  EXPECT_FALSE(asked(server)) << "no second connection";
}

TEST_F(ReadyProbesTest, TryTheHostsOwnAddressAndLoopback) {
  std::uint16_t port = 0;
  std::uint16_t other = 0;
  const UniqueFd on_loopback = bound(port, "127.0.0.1");
  const UniqueFd on_host = bound(other, "127.0.1.7");
  ASSERT_EQ(::listen(on_loopback.get(), 8), 0);
  ASSERT_EQ(::listen(on_host.get(), 8), 0);
  const auto tried = probes({"127.0.1.7", "no address", "127.0.0.1", "::1"});
  tried->begin(kKey, port);
  tried->begin(kOther, other);
  ASSERT_TRUE(run_until([&] { return ready_.size() == 2; }));
  EXPECT_TRUE(std::find(ready_.begin(), ready_.end(), kOther) != ready_.end());
}

TEST_F(ReadyProbesTest, EndWithTheirRank) {
  std::uint16_t port = 0;
  const UniqueFd server = bound(port);
  const auto tried = probes({"127.0.0.1"});
  tried->begin(kKey, port);
  ASSERT_TRUE(wait(Duration::milliseconds(20)));
  tried->end(kKey);
  ASSERT_EQ(::listen(server.get(), 8), 0);
  ASSERT_TRUE(wait(Duration::milliseconds(300)));
  EXPECT_TRUE(ready_.empty());
  EXPECT_FALSE(asked(server));
}

constexpr int kCannotTell = 77;

// In a network of its own whose every outgoing connection has the port that is probed: the connection meets itself.
int probe_in_a_network_of_one_port(std::uint16_t port) {
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return kCannotTell;
  const UniqueFd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  loopback.ifr_name[0] = 'l';
  loopback.ifr_name[1] = 'o';
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(any.get(), SIOCSIFFLAGS, &loopback) != 0) return kCannotTell;
  std::ofstream range("/proc/sys/net/ipv4/ip_local_port_range");
  range << port << ' ' << port << std::endl;
  if (!range.good()) return kCannotTell;
  // That it does meet itself here, or nothing is proved.
  const UniqueFd plain(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  (void)::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  if (::connect(plain.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return 2;
  const linger at_once{.l_onoff = 1, .l_linger = 0};  // or the port would be waited for
  (void)::setsockopt(plain.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  return 0;
}

TEST_F(ReadyProbesTest, TakeAConnectionToItselfForNone) {
  constexpr std::uint16_t kPort = 40'000;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int code = probe_in_a_network_of_one_port(kPort);
    auto loop = EventLoop::create();
    if (code == 0 && !loop.ok()) code = 4;
    if (code == 0) {
      bool ready = false;
      ReadyProbes tried(**loop, {"127.0.0.1"}, [&ready](const Incarnation&) { ready = true; });
      tried.begin(kKey, kPort);
      const Instant end = boot_now() + Duration::milliseconds(600);
      bool late = false;
      (void)(*loop)->at(end, [&late] { late = true; });
      while (!ready && !late) (*loop)->run_once();
      code = ready ? 1 : 0;
    }
    ::_exit(code);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kCannotTell) GTEST_SKIP() << "no network namespace of one's own here";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: nobody listens, and it was taken for ready; others: not made out";
}

}  // namespace
}  // namespace monarch::daemon
