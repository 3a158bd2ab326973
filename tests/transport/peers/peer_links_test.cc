// Two hosts' processes of one kind in one loop, with real sockets between them.

#include "transport/peers/peer_links.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "tests/transport/base/lower_limit.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {
namespace {

constexpr Duration kPatience = Duration::seconds(60);

class PeerLinksTest : public ::testing::Test {
 protected:
  struct Host {
    CurveKeyPair keys = *make_curve_key_pair();
    std::unique_ptr<ZmqContext> context = *ZmqContext::create({.io_threads = 1});
    std::unique_ptr<PeerLinks> links;
    std::vector<std::string> events;
    bool is_scarce = false;
  };

  PeerLinks::Handlers handlers_of(Host& host) {
    return {.on_message = [&host](HostId from, PeerVia via, const FrameHeader& header,
                                  std::vector<ZmqFrame>&& frames) -> Status {
              if (header.type == 666) return Error{ErrorCode::kInvalid, "a number of nothing"};
              std::string heard = text(from.value(), via == PeerVia::kOurs ? " ours " : " theirs ", header.type);
              for (const ZmqFrame& frame : frames) heard.append(" ").append(frame.bytes());
              host.events.push_back(heard);
              return {};
            },
            .on_up = [&host](HostId other) { host.events.push_back(text("up ", other.value())); },
            .on_down = [&host](HostId other) { host.events.push_back(text("down ", other.value())); },
            .on_scarce = [&host](bool scarce) { host.is_scarce = scarce; }};
  }

  Result<std::unique_ptr<PeerLinks>> open(Host& host, PortRange ports = {},
                                          Duration handshake = Duration::seconds(20)) {
    return PeerLinks::open(*host.context, zmq_loop_, host.keys, options_of(ports, handshake), handlers_of(host));
  }
  static PeerLinks::Options options_of(PortRange ports, Duration handshake) {
    PeerLinks::Options options;
    options.kind = "vault";
    options.address = "127.0.0.1";
    options.ports = ports;
    options.link.handshake_interval = handshake;
    options.link.message_bytes = 16U << 20U;
    options.seed = 1;
    return options;
  }

  void start(Host& host) {
    auto links = open(host);
    ASSERT_TRUE(links.ok()) << links.error().message;
    host.links = std::move(*links);
  }

  PeerAddress address_of(std::uint32_t number, const Host& host) const {
    return {.host = HostId(number),
            .name = text("h", number),
            .address = "127.0.0.1",
            .port = host.links->port(),
            .public_key = host.keys.public_key.to_text()};
  }

  static bool say(Host& host, HostId to, PeerVia via, std::uint16_t type, std::vector<std::string> parts) {
    std::vector<ZmqFrame> frames;
    for (std::string& part : parts) frames.push_back(ZmqFrame::take(std::move(part)));
    FrameHeader header;
    header.type = type;
    return host.links->send(to, via, header, std::move(frames)).ok();
  }

  template <class Condition>
  bool until(Condition&& holds) {
    const Instant deadline = boot_now() + kPatience;
    while (!holds()) {
      if (boot_now() >= deadline) return false;
      zmq_loop_.turn(deadline);
    }
    return true;
  }
  bool hears(const Host& host, const std::string& event) {
    return until([&] { return !host.events.empty() && host.events.back() == event; });
  }

  std::unique_ptr<EventLoop> loop_ = *EventLoop::create();
  ZmqLoop zmq_loop_{*loop_};
};

TEST_F(PeerLinksTest, CarriesFramesByEitherOnesConnection) {
  Host one;
  Host two;
  start(one);
  start(two);
  one.links->set_peers({address_of(2, two)});
  two.links->set_peers({address_of(1, one)});
  EXPECT_FALSE(say(one, HostId(2), PeerVia::kOurs, 7, {"early"}));
  EXPECT_FALSE(say(two, HostId(1), PeerVia::kTheirs, 7, {"early"}));
  one.links->dial(HostId(2));
  ASSERT_TRUE(hears(one, "up 2"));
  ASSERT_TRUE(say(one, HostId(2), PeerVia::kOurs, 7, {"hello", "bytes"}));
  ASSERT_TRUE(hears(two, "1 theirs 7 hello bytes"));
  ASSERT_TRUE(say(two, HostId(1), PeerVia::kTheirs, 8, {"answer"}));
  ASSERT_TRUE(hears(one, "2 ours 8 answer"));
  // Nobody has dialled this way.
  EXPECT_FALSE(say(two, HostId(1), PeerVia::kOurs, 8, {"answer"}));
  // What means nothing is passed over, and what follows it is heard.
  ASSERT_TRUE(say(one, HostId(2), PeerVia::kOurs, 666, {"?"}));
  ASSERT_TRUE(say(one, HostId(2), PeerVia::kOurs, 9, {}));
  ASSERT_TRUE(say(one, HostId(2), PeerVia::kOurs, 9, {"after"}));
  ASSERT_TRUE(hears(two, "1 theirs 9 after"));
  // Dialled again it says so again.
  one.links->dial(HostId(2));
  ASSERT_TRUE(hears(one, "up 2"));
  two.links.reset();
  ASSERT_TRUE(hears(one, "down 2"));
}

TEST_F(PeerLinksTest, HearsNobodyWhomItsTableDoesNotName) {
  Host one;
  Host two;
  Host three;
  start(one);
  start(two);
  start(three);
  one.links->set_peers({address_of(2, two)});
  three.links->set_peers({address_of(2, two)});
  two.links->set_peers({address_of(3, three)});
  one.links->dial(HostId(2));
  three.links->dial(HostId(2));
  ASSERT_TRUE(hears(three, "up 2"));
  EXPECT_TRUE(one.events.empty());
  two.links->set_peers({});
  ASSERT_TRUE(say(three, HostId(2), PeerVia::kOurs, 7, {"of none any more"}));
  two.links->set_peers({address_of(1, one)});
  ASSERT_TRUE(hears(one, "up 2"));
  ASSERT_TRUE(say(one, HostId(2), PeerVia::kOurs, 7, {"hello"}));
  ASSERT_TRUE(hears(two, "1 theirs 7 hello"));
  EXPECT_EQ(two.events.size(), 1U);
}

// What waits for a host that does not read is bounded in bytes, and not in messages alone.
TEST_F(PeerLinksTest, SendsNoMoreThanItsQueueHasBytesFor) {
  constexpr std::size_t kMessage = 1U << 20U;
  PeerLinks::Options few = options_of({}, Duration::seconds(20));
  few.queue_bytes = 4 * kMessage;
  few.link.receive_high_water_mark = 8;
  Host one;
  Host two;
  for (Host* const host : {&one, &two}) {
    auto links = PeerLinks::open(*host->context, zmq_loop_, host->keys, few, handlers_of(*host));
    ASSERT_TRUE(links.ok()) << links.error().message;
    host->links = std::move(*links);
  }
  one.links->set_peers({address_of(2, two)});
  two.links->set_peers({address_of(1, one)});
  one.links->dial(HostId(2));
  ASSERT_TRUE(hears(one, "up 2"));
  // Nobody turns the loop meanwhile. Buffers of the system take some.
  std::size_t sent = 0;
  while (sent < 200 && say(one, HostId(2), PeerVia::kOurs, 7, {std::string(kMessage, 'x')})) ++sent;
  EXPECT_LT(sent, 100U);
  ASSERT_TRUE(until([&] { return two.events.size() == sent; })) << sent;
  ASSERT_TRUE(until([&] { return say(one, HostId(2), PeerVia::kOurs, 8, {"small"}); }));
  ASSERT_TRUE(hears(two, "1 theirs 8 small"));
  EXPECT_TRUE(say(two, HostId(1), PeerVia::kTheirs, 9, {std::string(8 * kMessage, 'y')})) << "one alone may have more";
}

// A process that dials the port that it is told, 200 connections at a time, and says nothing by any of them. It ends
// with this.
class Strangers {
 public:
  Strangers() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const UniqueFd read_end(ends[0]);
    port_ = UniqueFd(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) dial(read_end.get());
  }
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;
  ~Strangers() {
    (void)::kill(pid_, SIGKILL);
    EXPECT_EQ(::waitpid(pid_, nullptr, 0), pid_);
  }
  void come_to(std::uint16_t port) const { ASSERT_EQ(::write(port_.get(), &port, sizeof port), ssize_t{sizeof port}); }

 private:
  [[noreturn]] static void dial(int port_fd) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::uint16_t port = 0;
    if (::read(port_fd, &port, sizeof port) != sizeof port) ::_exit(1);
    there.sin_port = htons(port);
    std::array<pollfd, 200> held{};
    for (pollfd& one : held) one.fd = -1;
    for (;;) {
      for (pollfd& one : held) {
        std::array<char, 4096> said{};
        const bool is_over = (one.revents & (POLLIN | POLLHUP | POLLERR)) != 0 &&
                             ::recv(one.fd, said.data(), said.size(), MSG_DONTWAIT) <= 0;
        if (one.fd >= 0 && !is_over) continue;
        if (one.fd >= 0) (void)::close(one.fd);
        one = {.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), .events = POLLIN, .revents = 0};
        (void)::connect(one.fd, reinterpret_cast<const sockaddr*>(&there), sizeof there);
      }
      (void)::poll(held.data(), held.size(), 50);
    }
  }

  UniqueFd port_;
  pid_t pid_ = -1;
};

TEST_F(PeerLinksTest, DialsAgainWhereItHadNoDescriptor) {
  if (!kWorksWithoutDescriptors) GTEST_SKIP() << kWantsDescriptors;
  Host one;
  Host two;
  start(one);
  start(two);
  one.links->set_peers({address_of(2, two)});
  two.links->set_peers({address_of(1, one)});
  {
    const UniqueFd next(::dup(STDERR_FILENO));
    ASSERT_TRUE(next.valid());
    const LowerLimit none(RLIMIT_NOFILE, static_cast<rlim_t>(next.get()));
    one.links->dial(HostId(2));
  }
  EXPECT_TRUE(hears(one, "up 2"));
}

TEST_F(PeerLinksTest, LeavesDescriptorsToItsProcessWhoeverDials) {
  if (!kWorksWithoutDescriptors) GTEST_SKIP() << kWantsDescriptors;
  const Strangers strangers;
  const std::optional<DescriptorUse> use = descriptor_use();
  ASSERT_TRUE(use.has_value());
  const std::size_t limit = use->open + 120;
  const std::size_t kept = DescriptorUse{.open = 0, .limit = limit}.reserve();
  const LowerLimit few(RLIMIT_NOFILE, static_cast<rlim_t>(limit));
  Host one;
  Host two;
  start(one);
  auto links = open(two, {}, Duration::milliseconds(500));
  ASSERT_TRUE(links.ok()) << links.error().message;
  two.links = std::move(*links);
  one.links->set_peers({address_of(2, two)});
  two.links->set_peers({address_of(1, one)});
  one.links->dial(HostId(2));
  ASSERT_TRUE(hears(one, "up 2"));
  strangers.come_to(two.links->port());
  ASSERT_TRUE(until([&] { return two.is_scarce; }));
  const auto has_enough = [&] {
    const std::optional<DescriptorUse> now = descriptor_use();
    return now && now->left() >= kept / 2;
  };
  ASSERT_TRUE(until(has_enough));
  for (int round = 0; round < 20; ++round) {
    EXPECT_TRUE(has_enough()) << round;
    const std::string number = text(round);
    ASSERT_TRUE(say(one, HostId(2), PeerVia::kOurs, 7, {number}));
    ASSERT_TRUE(hears(two, "1 theirs 7 " + number));
  }
  EXPECT_TRUE(two.links->make_room()) << "some are held";
}

TEST_F(PeerLinksTest, TakesTheHighestFreePortOfItsRange) {
  Host first;
  start(first);
  const std::uint16_t taken = first.links->port();
  {
    Host another;
    const auto links = open(another, {static_cast<std::uint16_t>(taken - 20), taken});
    ASSERT_TRUE(links.ok()) << links.error().message;
    EXPECT_LT((*links)->port(), taken);
    EXPECT_GT((*links)->port(), taken - 20);
  }
  {
    // As a keeper reserves one for a rank: bound, and not listened at.
    const UniqueFd reserved(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    sockaddr_in address{};
    socklen_t size = sizeof address;
    address.sin_family = AF_INET;
    ASSERT_EQ(::setsockopt(reserved.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    ASSERT_EQ(::bind(reserved.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    ASSERT_EQ(::getsockname(reserved.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    const std::uint16_t port = ntohs(address.sin_port);
    Host another;
    const auto links = open(another, {static_cast<std::uint16_t>(port - 20), port});
    ASSERT_TRUE(links.ok()) << links.error().message;
    EXPECT_LT((*links)->port(), port);
  }
  Host last;
  const auto none = open(last, {taken, taken});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kBusy);
}

}  // namespace
}  // namespace monarch
