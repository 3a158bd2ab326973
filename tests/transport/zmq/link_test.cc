// Links between honest peers: what is delivered, what is said when it cannot be, and how they come back.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "tests/transport/zmq/zmq_lab.h"

namespace monarch {
namespace {

// A wire between a client and a server that can be cut without either side hearing of it.
class Wire {
 public:
  explicit Wire(ZmqLab& lab) : lab_(lab), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), raw, size), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener_.get(), raw, &size), 0);
    port_ = ntohs(address.sin_port);
    watches_.push_back(lab.events->watch(listener_.get(), Interest::kRead, [this](Readiness) { accept(); }).value());
  }
  ~Wire() { cut(); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  std::uint16_t port() const { return port_; }
  // From now on bytes go in and never come out; the connections stay open.
  void cut() {
    for (const WatchId watch : watches_) lab_.events->forget(watch);
    watches_.clear();
  }

 private:
  void accept() {
    ends_.emplace_back(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const int client = ends_.back().get();
    ends_.push_back(lab_.raw_connection());
    const int server = ends_.back().get();
    forward(client, server);
    forward(server, client);
  }
  void forward(int from, int to) {
    const auto pump = [from, to](Readiness) {
      std::array<char, 4096> buffer{};
      const ssize_t count = ::recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (count <= 0) return;
      EXPECT_EQ(::send(to, buffer.data(), static_cast<std::size_t>(count), MSG_NOSIGNAL), count);
    };
    watches_.push_back(lab_.events->watch(from, Interest::kRead, pump).value());
  }

  ZmqLab& lab_;
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::vector<UniqueFd> ends_;
  std::vector<WatchId> watches_;
};

// This process's connected TCP sockets on which what is lost is asked for again without doubling the wait.
int thin_connections() {
  constexpr int kMostDescriptors = 1'024;
  int thin = 0;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    sockaddr_in peer{};
    socklen_t peer_size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0 || peer.sin_family != AF_INET) continue;
    int on = 0;
    socklen_t size = sizeof on;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, &size) == 0) thin += on;
  }
  return thin;
}

TEST(Links, AskForWhatIsLostAgainAndAgainAtBothEnds) {
  ZmqLab lab;
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "host-1"}});
  const int before = thin_connections();
  const auto client = lab.client(keys);
  ASSERT_TRUE(lab.until([&] { return client->saw(ClientEvent::kConnected); }));
  ASSERT_TRUE(lab.until([&] { return lab.counters().handshaken == 1; }));
  EXPECT_EQ(thin_connections(), before + 2);
}

TEST(ServerLink, HandsOnFramesWithTheSendersUserId) {
  ZmqLab lab;
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  const auto peer = lab.client(keys);
  ASSERT_TRUE(lab.until([&] { return peer->link->connected(); }));
  std::vector<ZmqFrame> frames;
  frames.push_back(ZmqFrame::copy("header"));
  frames.push_back(ZmqFrame::take(std::string(100'000, 'p')));
  frames.push_back(ZmqFrame());
  ASSERT_TRUE(peer->link->send(frames).ok());
  ASSERT_TRUE(lab.until([&] { return !lab.inbound.empty(); }));
  const InboundMessage& message = lab.inbound.front();
  EXPECT_EQ(message.user_id, "worker/h1");
  ASSERT_EQ(message.frames.size(), 3U);
  EXPECT_EQ(message.frames[0].bytes(), "header");
  EXPECT_EQ(message.frames[1].bytes(), std::string(100'000, 'p'));
  EXPECT_EQ(message.frames[2].size(), 0U);
  EXPECT_EQ(message.frames[0].peer_address(), "127.0.0.1");
  EXPECT_EQ(lab.counters().messages, 1U);
  EXPECT_EQ(lab.counters().handshaken, 1U);
  EXPECT_EQ(lab.counters().junk(), 0U);
}

TEST(ServerLink, SendToALinkThatEndedIsGone) {
  ZmqLab lab;
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  auto peer = lab.client(keys);
  ASSERT_TRUE(lab.until([&] { return peer->link->connected(); }));
  ASSERT_TRUE(peer->send("hello").ok());
  ASSERT_TRUE(lab.until([&] { return !lab.inbound.empty(); }));
  peer.reset();
  ErrorCode code = ErrorCode::kInternal;
  ASSERT_TRUE(lab.until([&] {
    auto frames = one_frame("anybody?");
    const Status sent = lab.server->send(lab.inbound.front().link, frames);
    if (!sent.ok()) code = sent.error().code;
    return !sent.ok();
  }));
  EXPECT_EQ(code, ErrorCode::kGone);
  EXPECT_EQ(lab.counters().sends_gone, 1U);
}

TEST(ServerLink, SendToAFullQueueIsBusyAndKeepsTheFrames) {
  ZmqLab lab({.server = {.high_water_mark = 4}});
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  auto options = lab.client_options();
  options.link.high_water_mark = 4;
  auto silent = ClientLink::connect(*lab.context, options, keys);  // no loop reads it
  ASSERT_TRUE(silent.ok());
  ASSERT_TRUE(lab.until([&] { return (*silent)->next_event() == ClientEvent::kConnected; }));
  auto hello = one_frame("hello");
  ASSERT_TRUE((*silent)->send(hello).ok());
  ASSERT_TRUE(lab.until([&] { return !lab.inbound.empty(); }));
  const std::string payload(512U << 10U, 'x');
  ErrorCode code = ErrorCode::kInternal;
  std::size_t kept = 0;
  ASSERT_TRUE(lab.until([&] {
    auto frames = one_frame(payload);
    const Status sent = lab.server->send(lab.inbound.front().link, frames);
    if (sent.ok()) return false;
    code = sent.error().code;
    kept = frames.size() == 1 ? frames[0].size() : 0;
    return true;
  }));
  EXPECT_EQ(code, ErrorCode::kBusy);
  EXPECT_EQ(kept, payload.size());
  EXPECT_EQ(lab.counters().sends_full, 1U);
}

TEST(ServerLink, TakesTheFirstFreePortOfItsRange) {
  ZmqLab lab;
  lab.bind();
  const std::uint16_t taken = lab.server->port();
  const auto none = ServerLink::bind(*lab.context, {.ports = {taken, taken}}, lab.server_keys);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kBusy);
  const auto last = static_cast<std::uint16_t>(std::min(taken + 20, 65'535));
  const auto next = ServerLink::bind(*lab.context, {.ports = {taken, last}}, lab.server_keys);
  ASSERT_TRUE(next.ok());
  EXPECT_GT((*next)->port(), taken);
  EXPECT_LE((*next)->port(), last);
}

TEST(ServerLink, RefusesANameForAnAddress) {
  ZmqLab lab;
  const auto server = ServerLink::bind(*lab.context, {.address = "localhost"}, lab.server_keys);
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().code, ErrorCode::kInvalid);
}

TEST(ClientLink, SendBeforeTheConnectionIsGone) {
  ZmqLab lab;
  lab.bind();
  const auto peer = lab.client(key_pair());
  const Status sent = peer->send("too early");
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code, ErrorCode::kGone);
}

// libzmq would drop what is unread with the connection, also the rest of a message whose first part has been read.
TEST(ClientLink, HasAllThatCameBeforeTheConnectionEnded) {
  constexpr std::size_t kMessages = 300;
  ZmqLab lab;
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  auto link = ClientLink::connect(*lab.context, lab.client_options(), keys);
  ASSERT_TRUE(link.ok());
  std::vector<ClientEvent> events;
  const auto saw = [&](ClientEvent wanted) {
    while (const auto event = (*link)->next_event()) events.push_back(*event);
    return !events.empty() && events.back() == wanted;
  };
  ASSERT_TRUE(lab.until([&] { return saw(ClientEvent::kConnected); }));
  auto hello = one_frame("hello");
  ASSERT_TRUE((*link)->send(hello).ok());
  ASSERT_TRUE(lab.until([&] { return lab.from("worker/h1") != nullptr; }));
  for (std::size_t i = 0; i < kMessages; ++i) {
    std::vector<ZmqFrame> frames = one_frame("head");
    frames.push_back(ZmqFrame::copy(std::to_string(i)));
    ASSERT_TRUE(lab.server->send(lab.inbound.front().link, frames).ok());
  }
  lab.server->linger(Duration::seconds(5));
  lab.server.reset();
  ASSERT_TRUE(lab.until([&] { return saw(ClientEvent::kDisconnected); }));
  for (std::size_t i = 0; i < kMessages; ++i) {
    const auto frames = (*link)->receive();
    ASSERT_TRUE(frames) << i;
    ASSERT_EQ(frames->size(), 2U);
    EXPECT_EQ(frames->at(1).bytes(), std::to_string(i));
  }
  EXPECT_FALSE((*link)->receive());
}

TEST(ClientLink, IsFinishedWhenItsConnectionEnds) {
  ZmqLab lab;
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  const auto peer = lab.client(keys);
  ASSERT_TRUE(lab.until([&] { return peer->link->connected(); }));
  const std::uint16_t port = lab.server->port();
  lab.server.reset();
  ASSERT_TRUE(lab.until([&] { return peer->saw(ClientEvent::kDisconnected); }));
  ASSERT_TRUE(lab.bind_again(port));
  EXPECT_EQ(peer->send("still there?").error().code, ErrorCode::kGone);
  const auto next = lab.client(keys);
  ASSERT_TRUE(lab.until([&] { return next->link->connected(); }));
  EXPECT_FALSE(peer->link->connected());
  EXPECT_EQ(peer->events, (std::vector<ClientEvent>{ClientEvent::kConnected, ClientEvent::kDisconnected}));
}

TEST(ClientLink, SaysWhereNobodyListens) {
  ZmqLab lab;
  lab.bind();
  auto options = lab.client_options();
  lab.server.reset();
  options.port = 9;  // discard: not in use on test machines
  const CurveKeyPair keys = key_pair();
  RecordedClient peer(*lab.context, *lab.loop, options, keys);
  ASSERT_TRUE(lab.until([&] { return !peer.events.empty(); }));
  EXPECT_EQ(peer.events, std::vector<ClientEvent>{ClientEvent::kUnreachable});
}

TEST(ClientLink, SecondLinkOfOneKeyIsHeardWhileTheRouterHoldsTheFirst) {
  ZmqLab lab;
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  const auto old_link = lab.client(keys);
  ASSERT_TRUE(lab.until([&] { return old_link->link->connected(); }));
  ASSERT_TRUE(old_link->send("hello").ok());
  ASSERT_TRUE(lab.until([&] { return lab.inbound.size() == 1; }));
  const auto new_link = lab.client(keys);
  ASSERT_TRUE(lab.until([&] { return new_link->link->connected(); }));
  ASSERT_TRUE(new_link->send("hello").ok());
  ASSERT_TRUE(lab.until([&] { return lab.inbound.size() == 2; }));
  ASSERT_TRUE(old_link->send("late").ok());
  ASSERT_TRUE(lab.until([&] { return lab.inbound.size() == 3; }));

  LinkTable table;
  const auto bind = [&](std::size_t i) { return table.bind(lab.inbound[i].link, lab.inbound[i].user_id, "worker/h1"); };
  EXPECT_EQ(bind(0), LinkTable::Bound::kNew);
  EXPECT_EQ(bind(1), LinkTable::Bound::kMoved);
  EXPECT_EQ(bind(2), LinkTable::Bound::kStale);
  auto answer = one_frame("answer");
  ASSERT_TRUE(lab.server->send(*table.link_of("worker/h1"), answer).ok());
  ASSERT_TRUE(lab.until([&] { return !new_link->messages.empty(); }));
  EXPECT_TRUE(old_link->messages.empty());
}

TEST(ServerLink, NamesLaterLinksWithLaterIds) {  // what LinkTable rests on
  ZmqLab lab;
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  for (std::size_t i = 0; i < 10; ++i) {
    const auto peer = lab.client(keys);
    ASSERT_TRUE(lab.until([&] { return peer->link->connected(); }));
    ASSERT_TRUE(peer->send("hello").ok());
    ASSERT_TRUE(lab.until([&] { return lab.inbound.size() == i + 1; }));
    if (i == 0) continue;
    EXPECT_TRUE(newer(lab.inbound[i].link, lab.inbound[i - 1].link));
  }
}

TEST(ClientLink, BothEndsDropAConnectionThatWasCutWithoutAWord) {
  const LinkOptions quick{.beat_interval = Duration::milliseconds(100), .beat_timeout = Duration::milliseconds(500)};
  ZmqLab lab({.server = quick});
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  Wire wire(lab);
  auto options = lab.client_options();
  options.port = wire.port();
  options.link = quick;
  RecordedClient peer(*lab.context, *lab.loop, options, keys);
  ASSERT_TRUE(lab.until([&] { return peer.link->connected(); }));
  ASSERT_TRUE(peer.send("hello").ok());
  ASSERT_TRUE(lab.until([&] { return lab.from("worker/h1") != nullptr; }));
  wire.cut();
  ASSERT_TRUE(lab.until([&] { return peer.saw(ClientEvent::kDisconnected); }));
  ASSERT_TRUE(lab.until([&] { return lab.counters().disconnected >= 1; }));
  ASSERT_TRUE(lab.until([&] {
    auto frames = one_frame("anybody?");
    const Status sent = lab.server->send(lab.inbound.front().link, frames);
    return !sent.ok() && sent.error().code == ErrorCode::kGone;
  }));
}

}  // namespace
}  // namespace monarch
