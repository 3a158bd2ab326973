// Ports of a real sshd's host that lead back here: bytes, ends, floods, silence, and who may not.

#include "supervisor/launch/ssh/ssh_tunnel.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <memory>
#include <thread>

#include "tests/supervisor/launch/ssh/ssh_server.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

constexpr Duration kSoon = Duration::seconds(20);
constexpr int kSoonMilliseconds = 20'000;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

UniqueFd dial_loopback(std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << port;
  return socket;
}

// A port here.
class Door {
 public:
  Door() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), generic, size), 0);
    EXPECT_EQ(::listen(listener_.get(), 64), 0);
    EXPECT_EQ(::getsockname(listener_.get(), generic, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  std::uint16_t port() const { return port_; }
  UniqueFd accept() const {
    pollfd waiting{listener_.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, kSoonMilliseconds), 1) << "nobody came";
    return UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

 private:
  UniqueFd listener_;
  std::uint16_t port_ = 0;
};

// False when the other side took no more in that time.
bool write_all(const UniqueFd& socket, std::string_view bytes, int milliseconds = kSoonMilliseconds) {
  while (!bytes.empty()) {
    pollfd ready{socket.get(), POLLOUT, 0};
    if (::poll(&ready, 1, milliseconds) != 1) return false;
    const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return false;
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
  }
  return true;
}

// So many bytes, or all until the end.
std::string read_all(const UniqueFd& socket, std::size_t most = SIZE_MAX) {
  std::string all;
  char piece[65'536];
  while (all.size() < most) {
    pollfd ready{socket.get(), POLLIN, 0};
    if (::poll(&ready, 1, kSoonMilliseconds) != 1) {
      ADD_FAILURE() << "no more came after " << all.size() << " bytes";
      break;
    }
    const ssize_t got = ::recv(socket.get(), piece, std::min(sizeof piece, most - all.size()), 0);
    if (got <= 0) break;
    all.append(piece, static_cast<std::size_t>(got));
  }
  return all;
}

std::string numbers(std::size_t bytes) {
  std::string all;
  for (std::uint32_t i = 0; all.size() < bytes; ++i) all += text(i, ' ');
  return all;
}

class SshTunnelTest : public ::testing::Test {
 protected:
  struct Opened {
    std::vector<std::uint16_t> there;
    pid_t sshd = 0;  // of this session
    std::optional<Error> refused;
  };

  void SetUp() override {
    const std::string lacks = SshServer::lacks();
    if (!lacks.empty()) GTEST_SKIP() << "this machine lacks " << lacks;
  }
  void TearDown() override { stop(); }

  void serve(const std::string& configuration = "") {
    server_ = std::make_unique<SshServer>("ed25519", configuration);
    ASSERT_EQ(server_->failure(), "");
  }
  SshTunnelOptions options() const { return {.wanted = {0, 0}, .ports = {control_.port(), bulk_.port()}}; }

  // A session and its tunnel, in a thread of their own; until stop().
  Opened open(const SshRoute& route, const SshTunnelOptions& options) {
    stop();
    cancel_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
    std::promise<Opened> told;
    auto answer = told.get_future();
    std::promise<Error> ended;
    ended_ = ended.get_future();
    thread_ = std::thread(
        [route, options, cancel = cancel_.get(), told = std::move(told), ended = std::move(ended)]() mutable {
          const Patience soon(kSoon, -1);
          auto session = SshSession::open(route, -1);
          if (const auto* failure = std::get_if<SshFailure>(&session)) {
            ADD_FAILURE() << failure->failure.message;
            return told.set_value({});
          }
          SshSession& opened = *std::get<std::unique_ptr<SshSession>>(session);
          auto tunnel = SshTunnel::open(opened, options, soon);
          if (!tunnel.ok()) return told.set_value({.refused = tunnel.error()});
          Opened out{.there = (*tunnel)->there()};
          {
            auto channel = opened.exec("echo $PPID; sleep 100", soon);
            EXPECT_TRUE(channel.ok());
            std::string words;
            while (words.find('\n') == std::string::npos && (*channel)->wait(soon).ok()) {
              const auto some = (*channel)->read_some();
              if (!some.ok() || some->ended) break;
              words += some->out;
            }
            out.sshd = words.empty() ? 0 : std::stoi(words);
          }
          told.set_value(out);
          ended.set_value((*tunnel)->carry(cancel));
        });
    return answer.get();
  }
  Opened open() { return open({server_->target()}, options()); }
  Error ended() {
    EXPECT_EQ(ended_.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    return ended_.get();
  }
  void stop() {
    if (!thread_.joinable()) return;
    const std::uint64_t one = 1;
    (void)!::write(cancel_.get(), &one, sizeof one);
    thread_.join();
  }

  std::unique_ptr<SshServer> server_;
  Door control_;
  Door bulk_;
  UniqueFd cancel_;
  std::future<Error> ended_;
  std::thread thread_;
};

TEST_F(SshTunnelTest, LeadsEachPortToItsOwnAndCarriesAllBeforeAnEnd) {
  serve();
  const Opened opened = open();
  ASSERT_EQ(opened.there.size(), 2U);
  const std::string there = numbers(3U << 20U);
  const std::string back = numbers(4U << 20U);
  for (const std::size_t i : {0U, 1U}) {
    const UniqueFd far = dial_loopback(opened.there[i]);
    const UniqueFd near = (i == 0 ? control_ : bulk_).accept();
    std::thread writer([&] {
      EXPECT_TRUE(write_all(far, there));
      EXPECT_EQ(::shutdown(far.get(), SHUT_WR), 0);
    });
    EXPECT_TRUE(read_all(near) == there);
    writer.join();
    // One way has ended, the other goes on.
    std::thread answerer([&] {
      EXPECT_TRUE(write_all(near, back));
      EXPECT_EQ(::shutdown(near.get(), SHUT_WR), 0);
    });
    EXPECT_TRUE(read_all(far) == back);
    answerer.join();
  }
}

TEST_F(SshTunnelTest, KeepsBeatsGoingBesideAFloodThatNobodyReads) {
  serve();
  const Opened opened = open();
  ASSERT_EQ(opened.there.size(), 2U);
  const UniqueFd beats = dial_loopback(opened.there[0]);
  const UniqueFd heard = control_.accept();
  const UniqueFd flood = dial_loopback(opened.there[1]);
  const UniqueFd unread = bulk_.accept();
  const std::string piece(1U << 20U, 'x');
  std::size_t taken = 0;
  constexpr std::size_t kMost = 64;  // MiB: windows, our buffer, and the kernel's on six sockets
  while (taken < kMost && write_all(flood, piece, 500)) ++taken;
  EXPECT_LT(taken, kMost) << "it is read without an end";
  std::size_t returned = 0;
  while (returned < kMost && write_all(unread, piece, 500)) ++returned;
  EXPECT_LT(returned, kMost);
  ASSERT_TRUE(write_all(beats, "beat"));
  EXPECT_EQ(read_all(heard, 4), "beat");
  ASSERT_TRUE(write_all(heard, "ack"));
  EXPECT_EQ(read_all(beats, 3), "ack");
  // And once it is read, it goes on.
  (void)read_all(unread, taken << 20U);
  ASSERT_TRUE(write_all(flood, piece));
}

TEST_F(SshTunnelTest, EndsAConnectionThatNobodyTakesHere) {
  serve();
  SshTunnelOptions nobody = options();
  {
    const Door gone;
    nobody.ports[1] = gone.port();
  }
  const Opened opened = open({server_->target()}, nobody);
  ASSERT_EQ(opened.there.size(), 2U);
  EXPECT_EQ(read_all(dial_loopback(opened.there[1])), "");
}

TEST_F(SshTunnelTest, HasABoundOfConnectionsForEachPort) {
  serve();
  const Opened opened = open();
  ASSERT_EQ(opened.there.size(), 2U);
  std::vector<UniqueFd> held;
  for (std::size_t i = 0; i < SshTunnel::kConnections; ++i) {
    held.push_back(dial_loopback(opened.there[1]));
    held.push_back(bulk_.accept());
  }
  EXPECT_EQ(read_all(dial_loopback(opened.there[1])), "") << "one too many";
  const UniqueFd far = dial_loopback(opened.there[0]);
  const UniqueFd near = control_.accept();
  ASSERT_TRUE(write_all(far, "still"));
  EXPECT_EQ(read_all(near, 5), "still");
  held.clear();
  // Their ends make room, once the host has said them.
  std::string first;
  for (int attempt = 0; attempt < 200 && first.empty(); ++attempt) {
    const UniqueFd again = dial_loopback(opened.there[1]);
    ASSERT_TRUE(write_all(again, "x"));
    pollfd ended{again.get(), POLLIN, 0};
    if (::poll(&ended, 1, 50) == 0) first = "room";
  }
  EXPECT_EQ(first, "room");
}

TEST_F(SshTunnelTest, IsRefusedWhereSshdForbidsIt) {
  for (const char* rule : {"AllowTcpForwarding no", "AllowTcpForwarding local", "PermitListen 127.0.0.1:1"}) {
    serve(rule);
    const Opened opened = open();
    ASSERT_TRUE(opened.refused) << rule;
    EXPECT_EQ(opened.refused->code, ErrorCode::kUnsupported) << rule;
    stop();
  }
}

TEST_F(SshTunnelTest, EndsWithItsConnectionAndHasTheSamePortsAgain) {
  serve();
  const Opened first = open();
  ASSERT_GT(first.sshd, 1);
  const UniqueFd far = dial_loopback(first.there[0]);
  const UniqueFd near = control_.accept();
  ASSERT_EQ(::kill(first.sshd, SIGKILL), 0);
  EXPECT_EQ(ended().code, ErrorCode::kGone);
  EXPECT_EQ(read_all(near), "") << "connections end with it";
  SshTunnelOptions same = options();
  same.wanted = first.there;
  const Opened second = open({server_->target()}, same);
  EXPECT_EQ(second.there, first.there);
  const UniqueFd again = dial_loopback(first.there[0]);
  const UniqueFd heard = control_.accept();
  ASSERT_TRUE(write_all(again, "back"));
  EXPECT_EQ(read_all(heard, 4), "back");
}

TEST_F(SshTunnelTest, AsksASilentHostForASignOfLifeAndGivesUpWithoutOne) {
  serve();
  SshTunnelOptions quick = options();
  quick.silence = {.ask_after = Duration::milliseconds(100), .dead_after = Duration::milliseconds(1'500)};
  const Opened opened = open({server_->target()}, quick);
  ASSERT_GT(opened.sshd, 1);
  // Nothing is said by itself for longer than that, and its answers are enough.
  EXPECT_EQ(ended_.wait_for(std::chrono::milliseconds(3'500)), std::future_status::timeout);
  ASSERT_EQ(::kill(opened.sshd, SIGSTOP), 0);
  EXPECT_EQ(ended().code, ErrorCode::kTimeout);
  ASSERT_EQ(::kill(opened.sshd, SIGKILL), 0);
}

TEST_F(SshTunnelTest, EndsAtOnceWhenNobodyWantsItAnyMore) {
  serve();
  const Opened opened = open();
  ASSERT_EQ(opened.there.size(), 2U);
  const Instant began = boot_now();
  stop();
  EXPECT_EQ(ended().code, ErrorCode::kBusy);
  EXPECT_LT(boot_now() - began, Duration::seconds(5));
}

TEST_F(SshTunnelTest, OutlivesNewKeysInTheMiddle) {
  serve("RekeyLimit 1M");
  const Opened opened = open();
  ASSERT_EQ(opened.there.size(), 2U);
  const std::string bytes = numbers(8U << 20U);
  const UniqueFd far = dial_loopback(opened.there[1]);
  const UniqueFd near = bulk_.accept();
  std::thread writer([&] { EXPECT_TRUE(write_all(far, bytes)); });
  std::thread answerer([&] { EXPECT_TRUE(write_all(near, bytes)); });
  std::thread reader([&] { EXPECT_TRUE(read_all(far, bytes.size()) == bytes); });
  EXPECT_TRUE(read_all(near, bytes.size()) == bytes);
  for (std::thread* each : {&writer, &answerer, &reader}) each->join();
}

// Words that wait for each other, over the connection that is looked at first, and many that say nothing and are looked
// at after it: a look at one of those may read what is meant for the first. Nothing else happens in the session that
// would wake it again.
TEST_F(SshTunnelTest, LosesNoWakeUpOfOneConnectionToAnother) {
  serve();
  constexpr int kWords = 3'000;
  for (const SshRoute& route : {SshRoute{server_->target()}, SshRoute{server_->target(), server_->target()}}) {
    SshTunnelOptions silent = options();
    silent.silence = {.ask_after = Duration::seconds(100), .dead_after = Duration::seconds(200)};
    const Opened opened = open(route, silent);
    ASSERT_EQ(opened.there.size(), 2U);
    const UniqueFd beats = dial_loopback(opened.there[0]);
    const UniqueFd heard = control_.accept();
    std::vector<UniqueFd> idle;
    for (std::size_t i = 0; i < SshTunnel::kConnections; ++i) {
      idle.push_back(dial_loopback(opened.there[1]));
      idle.push_back(bulk_.accept());
    }
    int answered = 0;
    std::thread echo([&heard] {
      for (int i = 0; i < kWords && read_all(heard, 4) == "beat"; ++i) (void)write_all(heard, "beat");
    });
    while (answered < kWords && write_all(beats, "beat") && read_all(beats, 4) == "beat") ++answered;
    EXPECT_EQ(answered, kWords);
    (void)::shutdown(heard.get(), SHUT_RDWR);
    echo.join();
    stop();
  }
}

TEST_F(SshTunnelTest, GoesThroughAJumpHost) {
  serve();
  const SshServer second;
  ASSERT_EQ(second.failure(), "");
  const Opened opened = open({server_->target(), second.target()}, options());
  ASSERT_EQ(opened.there.size(), 2U);
  const std::string bytes = numbers(3U << 20U);
  const UniqueFd far = dial_loopback(opened.there[1]);
  const UniqueFd near = bulk_.accept();
  std::thread writer([&] { EXPECT_TRUE(write_all(far, bytes)); });
  EXPECT_TRUE(read_all(near, bytes.size()) == bytes);
  writer.join();
  std::thread answerer([&] { EXPECT_TRUE(write_all(near, bytes)); });
  EXPECT_TRUE(read_all(far, bytes.size()) == bytes);
  answerer.join();
}

}  // namespace
}  // namespace monarch
