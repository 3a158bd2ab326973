// Peers that mean harm or are broken: each is stopped, and each is counted by name.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <zmq.h>

#include <string>
#include <vector>

#include "tests/transport/zmq/zmq_lab.h"
#include "transport/base/clock.h"

namespace monarch {
namespace {

// By number: our code must not name this option, by which a client chooses what the ROUTER calls it.
constexpr int kOwnRoutingId = 5;

// A socket of libzmq's own making, for what our links refuse to do.
std::unique_ptr<ZmqSocket> plain_dealer(ZmqLab& lab) {
  auto socket = ZmqSocket::create(*lab.context, ZMQ_DEALER);
  EXPECT_TRUE(socket.ok());
  return std::move(socket).value();
}

std::string endpoint(const ZmqLab& lab) { return "tcp://127.0.0.1:" + std::to_string(lab.server->port()); }

// A peer of this job reaches the server and gets an answer: the port works.
void expect_served(ZmqLab& lab, RecordedClient& peer, const std::string& user_id) {
  ASSERT_TRUE(lab.until([&] { return peer.link->connected(); }));
  ASSERT_TRUE(peer.send("still here?").ok());
  lab.inbound.clear();
  ASSERT_TRUE(lab.until([&] { return lab.from(user_id) != nullptr; }));
  auto answer = one_frame("yes");
  ASSERT_TRUE(lab.server->send(lab.from(user_id)->link, answer).ok());
  const std::size_t before = peer.messages.size();
  ASSERT_TRUE(lab.until([&] { return peer.messages.size() > before; }));
  EXPECT_EQ(peer.messages.back(), "yes");
}

TEST(Hostile, JunkBytesAreClosedAtOnceAndCounted) {  // X01
  ZmqLab lab;
  lab.bind();
  const UniqueFd junk = lab.raw_connection();
  const std::string bytes = "GET / HTTP/1.0\r\nHost: here\r\n\r\n" + std::string(200, 'x');
  ASSERT_EQ(::send(junk.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  ASSERT_TRUE(lab.until([&] { return closed_by_peer(junk.get()); }));
  ASSERT_TRUE(lab.until([&] { return lab.counters().disconnected == 1; }));
  EXPECT_EQ(lab.counters().accepted, 1U);
  EXPECT_EQ(lab.counters().handshaken, 0U);
  EXPECT_EQ(lab.counters().junk(), 1U);
}

TEST(Hostile, SilentConnectionIsClosedAfterTheHandshakeIntervalAndCounted) {  // X02
  ZmqLab lab({.server = {.handshake_interval = Duration::milliseconds(100)}});
  lab.bind();
  const UniqueFd silent = lab.raw_connection();
  ASSERT_TRUE(lab.until([&] { return closed_by_peer(silent.get()); }));
  ASSERT_TRUE(lab.until([&] { return lab.counters().silent == 1; }));
  EXPECT_EQ(lab.counters().accepted, 1U);
  EXPECT_EQ(lab.counters().junk(), 0U);
}

TEST(Hostile, TwoHundredHalfOpenConnectionsDoNotDisturbAGoodPeer) {  // X02
  ZmqLab lab;
  lab.bind();
  const CurveKeyPair keys = key_pair();
  const CurveKeyPair late_keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}, {late_keys.public_key, "worker/h2"}});
  const auto peer = lab.client(keys);
  expect_served(lab, *peer, "worker/h1");

  std::vector<UniqueFd> half_open;
  for (int i = 0; i < 200; ++i) half_open.push_back(lab.raw_connection());
  ASSERT_TRUE(lab.until([&] { return lab.counters().accepted >= 201; }));
  expect_served(lab, *peer, "worker/h1");
  const auto late = lab.client(late_keys);
  expect_served(lab, *late, "worker/h2");
  EXPECT_FALSE(peer->saw(ClientEvent::kDisconnected));
}

TEST(Hostile, PeerWithoutCurveIsRefusedAndCounted) {  // X03
  ZmqLab lab;
  lab.bind();
  // A greeting of ZMTP 3.0 (RFC 23): signature, version, mechanism, not a server, filler.
  std::string greeting("\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL", 16);
  greeting.resize(64, '\0');
  const UniqueFd plain = lab.raw_connection();
  ASSERT_EQ(::send(plain.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL), 64);
  ASSERT_TRUE(lab.until([&] { return closed_by_peer(plain.get()); }));
  ASSERT_TRUE(lab.until([&] { return lab.counters().protocol_errors >= 1; }));
  EXPECT_EQ(lab.counters().protocol_errors, 1U);
  EXPECT_EQ(lab.counters().handshaken, 0U);
}

TEST(Hostile, ClientWithoutCurveGetsNoMessageThrough) {  // X03
  ZmqLab lab;
  lab.bind();
  const auto plain = plain_dealer(lab);
  ASSERT_TRUE(plain->connect(endpoint(lab)).ok());
  auto frames = one_frame("let me in");
  ASSERT_TRUE(plain->send(frames).ok());  // queued until a connection that never comes
  // Whichever side finds out first closes: the port's name for it is not always the same.
  ASSERT_TRUE(lab.until([&] { return lab.counters().disconnected >= 1; }));
  const LinkCounters counters = lab.counters();
  EXPECT_GE(counters.protocol_errors + counters.silent + counters.junk(), 1U);
  EXPECT_EQ(counters.handshaken, 0U);
  EXPECT_EQ(counters.messages, 0U);
}

TEST(Hostile, PeerWithAWrongServerKeyIsRefusedAndCounted) {
  ZmqLab lab;
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  auto options = lab.client_options();
  options.server_key = key_pair().public_key;
  const RecordedClient client(*lab.context, *lab.loop, options, keys);
  ASSERT_TRUE(lab.until([&] { return lab.counters().protocol_errors >= 1; }));
  EXPECT_EQ(lab.counters().handshaken, 0U);
  EXPECT_FALSE(client.link->connected());
}

TEST(Hostile, UnknownKeyIsRefusedAndCountedOnce) {  // X04
  ZmqLab lab;
  lab.bind();
  lab.allow({{key_pair().public_key, "worker/h1"}});
  const auto stranger = lab.client(key_pair());
  ASSERT_TRUE(lab.until([&] { return stranger->saw(ClientEvent::kRefused); }));
  ASSERT_TRUE(lab.until([&] { return lab.counters().auth_refused >= 1 && lab.counters().disconnected >= 1; }));
  EXPECT_EQ(lab.counters().auth_refused, 1U);
  EXPECT_EQ(lab.counters().handshaken, 0U);
  EXPECT_EQ(lab.counters().junk(), 0U);
}

TEST(Hostile, NobodyGetsInWithoutAHandler) {  // X05
  ZmqLab lab({.with_handler = false});
  lab.bind();
  const auto client = lab.client(key_pair());
  ASSERT_TRUE(lab.until([&] { return lab.counters().silent >= 1; }));
  EXPECT_EQ(lab.counters().handshaken, 0U);
  EXPECT_FALSE(client->saw(ClientEvent::kConnected));
}

TEST(Hostile, ClaimOfAnotherPeersIdentityIsRefused) {  // X06
  ZmqLab lab;
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h2"}});
  const auto forger = lab.client(keys);
  ASSERT_TRUE(lab.until([&] { return forger->link->connected(); }));
  ASSERT_TRUE(forger->send("worker/h1").ok());  // its hello says who it claims to be
  ASSERT_TRUE(lab.until([&] { return !lab.inbound.empty(); }));
  const InboundMessage& hello = lab.inbound.front();
  EXPECT_EQ(hello.user_id, "worker/h2");
  LinkTable table;
  EXPECT_EQ(table.bind(hello.link, hello.user_id, hello.frames[0].bytes()), LinkTable::Bound::kForged);
  EXPECT_EQ(table.link_of("worker/h1"), std::nullopt);
}

TEST(Hostile, PeerThatChoosesItsRoutingIdIsNotHeard) {  // X06
  ZmqLab lab;
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h2"}});
  const auto chooser = plain_dealer(lab);
  ASSERT_TRUE(apply_link_options(*chooser, LinkOptions{}, keys).ok());
  ASSERT_TRUE(chooser->set_bytes(ZMQ_CURVE_SERVERKEY, lab.server_keys.public_key.bytes()).ok());
  ASSERT_TRUE(chooser->set_bytes(kOwnRoutingId, "worker/h1").ok());
  ASSERT_TRUE(chooser->connect(endpoint(lab)).ok());
  auto frames = one_frame("hello");
  ASSERT_TRUE(chooser->send(frames).ok());
  ASSERT_TRUE(lab.until([&] { return lab.counters().named_itself == 1; }));
  EXPECT_TRUE(lab.inbound.empty());
}

TEST(Hostile, FrameFarAboveTheLimitEndsTheConnection) {  // X07
  ZmqLab lab({.server = {.message_bytes = 1'024}});
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  const auto peer = lab.client(keys);
  ASSERT_TRUE(lab.until([&] { return peer->link->connected(); }));
  ASSERT_TRUE(peer->send(std::string(1'024 + kDisconnectSlack + 1, 'x')).ok());
  ASSERT_TRUE(lab.until([&] { return peer->saw(ClientEvent::kDisconnected); }));
  ASSERT_TRUE(lab.until([&] { return lab.counters().disconnected >= 1; }));
  EXPECT_EQ(lab.counters().messages, 0U);
}

TEST(Hostile, MessageAboveTheLimitIsDroppedAndCounted) {  // X07
  ZmqLab lab({.server = {.message_bytes = 1'024}});
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  const auto peer = lab.client(keys);
  ASSERT_TRUE(lab.until([&] { return peer->link->connected(); }));
  ASSERT_TRUE(peer->send(std::string(1'025, 'x')).ok());
  ASSERT_TRUE(peer->send(std::string(1'024, 'y')).ok());
  ASSERT_TRUE(lab.until([&] { return !lab.inbound.empty(); }));
  EXPECT_EQ(lab.inbound.front().frames[0].bytes().front(), 'y');
  EXPECT_EQ(lab.counters().oversize, 1U);
  EXPECT_FALSE(peer->saw(ClientEvent::kDisconnected));
}

TEST(Hostile, MessageOfTooManyFramesIsDroppedAndCounted) {
  ZmqLab lab;
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  const auto peer = lab.client(keys);
  ASSERT_TRUE(lab.until([&] { return peer->link->connected(); }));
  std::vector<ZmqFrame> many(kFramesPerMessage + 1);
  ASSERT_TRUE(peer->link->send(many).ok());
  std::vector<ZmqFrame> most(kFramesPerMessage);
  ASSERT_TRUE(peer->link->send(most).ok());
  ASSERT_TRUE(lab.until([&] { return !lab.inbound.empty(); }));
  EXPECT_EQ(lab.inbound.front().frames.size(), kFramesPerMessage);
  EXPECT_EQ(lab.counters().malformed, 1U);
}

// Frames of a size that passes, and no last one: all of them lie in our memory, and nobody sees any.
TEST(Hostile, MessageThatDoesNotEndEndsItsConnection) {  // X39
  constexpr std::uint64_t kMost = 2U << 20U;
  ZmqLab lab({.server = {.message_bytes = 64U << 10U, .unread_bytes = kMost}});
  lab.bind();
  const CurveKeyPair keys = key_pair();
  const CurveKeyPair good_keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}, {good_keys.public_key, "worker/h2"}});
  const auto good = lab.client(good_keys);
  expect_served(lab, *good, "worker/h2");
  BrokenWay way(lab, kMost + (1U << 20U));
  ClientOptions options = lab.client_options();
  options.port = way.port();
  RecordedClient hoarder(*lab.context, *lab.loop, options, keys);
  ASSERT_TRUE(lab.until([&] { return hoarder.link->connected(); }));
  std::vector<ZmqFrame> endless;
  for (int frame = 0; frame < 128; ++frame) endless.push_back(ZmqFrame::copy(std::string(60'000, 'x')));
  ASSERT_TRUE(hoarder.link->send(endless).ok());
  ASSERT_TRUE(lab.until([&] { return lab.counters().hoarded == 1; })) << way.gone();
  ASSERT_TRUE(lab.until([&] { return hoarder.saw(ClientEvent::kDisconnected); }));
  EXPECT_GT(way.gone(), kMost);
  ASSERT_TRUE(lab.until([&] { return lab.loop->unread().unread() < 4'096; })) << "it has gone with its connection";
  expect_served(lab, *good, "worker/h2");
  EXPECT_FALSE(good->saw(ClientEvent::kDisconnected));
  EXPECT_EQ(lab.counters().hoarded, 1U);
}

// What was handed out is counted to the byte: of a connection that says ever so much nothing adds up.
TEST(Hostile, NobodyIsTakenForOneThatHoards) {
  ZmqLab lab({.server = {.message_bytes = 64U << 10U, .unread_bytes = 64U << 10U}});
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  const auto peer = lab.client(keys);
  ASSERT_TRUE(lab.until([&] { return peer->link->connected(); }));
  for (std::size_t message = 0; message < 300; ++message) {
    std::vector<ZmqFrame> frames;
    for (const std::size_t size : {message, std::size_t{222}, std::size_t{223}, std::size_t{30'000}}) {
      frames.push_back(ZmqFrame::copy(std::string(size, 'x')));
    }
    ASSERT_TRUE(peer->link->send(frames).ok());
    std::vector<ZmqFrame> many(kFramesPerMessage + 3);  // passed over, and counted all the same
    ASSERT_TRUE(peer->link->send(many).ok());
    lab.inbound.clear();
    ASSERT_TRUE(lab.until([&] { return !lab.inbound.empty() && lab.counters().malformed == message + 1; }));
  }
  const Instant later = boot_now() + UnreadWatch::kEvery;
  ASSERT_TRUE(lab.until([&] { return boot_now() > later; }));
  lab.loop->unread().look(boot_now() + Duration::seconds(2));
  EXPECT_LT(lab.loop->unread().unread(), 4'096U) << "a handshake, and beats";
  EXPECT_EQ(lab.counters().hoarded, 0U);
  EXPECT_FALSE(peer->saw(ClientEvent::kDisconnected));
}

// The other way round: a server that would fill who has dialled it.
TEST(Hostile, AServersMessageThatDoesNotEndEndsTheConnection) {
  constexpr std::uint64_t kMost = 2U << 20U;
  ZmqLab lab({.server = {.message_bytes = 64U << 10U}});
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  ClientOptions options = lab.client_options();
  options.link.unread_bytes = kMost;
  RecordedClient dialled(*lab.context, *lab.loop, options, keys);
  dialled.link->watch_unread(lab.loop->unread());
  ASSERT_TRUE(lab.until([&] { return dialled.link->connected(); }));
  expect_served(lab, dialled, "worker/h1");
  std::vector<ZmqFrame> large;
  for (int frame = 0; frame < 16; ++frame) large.push_back(ZmqFrame::copy(std::string(60'000, 'x')));
  const LinkId link = lab.from("worker/h1")->link;
  dialled.pause();
  for (int message = 0; message < 8; ++message) {
    std::vector<ZmqFrame> again;
    for (const ZmqFrame& frame : large) again.push_back(ZmqFrame::copy(frame.bytes()));
    ASSERT_TRUE(lab.server->send(link, again).ok());
  }
  ASSERT_TRUE(lab.until([&] { return dialled.saw(ClientEvent::kDisconnected); }));
}

TEST(Hostile, FloodOfOnePeerDoesNotHoldUpAnother) {  // X08
  ZmqLab lab({.peer = {.per_second = 1, .burst = 100}});
  lab.bind();
  const CurveKeyPair flood_keys = key_pair();
  const CurveKeyPair keys = key_pair();
  lab.allow({{flood_keys.public_key, "worker/h1"}, {keys.public_key, "worker/h2"}});
  const auto flooder = lab.client(flood_keys);
  const auto peer = lab.client(keys);
  ASSERT_TRUE(lab.until([&] { return flooder->link->connected() && peer->link->connected(); }));
  std::uint64_t flooded = 0;
  std::size_t heard = 0;
  for (int beat = 0; beat < 50; ++beat) {
    heard += lab.inbound.size();
    lab.inbound.clear();
    ASSERT_TRUE(peer->send("beat").ok());
    ASSERT_TRUE(lab.until([&] {
      while (flooder->send("x").ok()) ++flooded;  // its queue is full at every turn
      return lab.from("worker/h2") != nullptr;
    }));
  }
  EXPECT_GT(flooded, 1'000U);
  ASSERT_TRUE(lab.until([&] { return lab.counters().flooded > 0; }));
  // Its burst, what a second or two add, and the beats.
  EXPECT_LT(heard, 100U + 30U + 50U);
}

}  // namespace
}  // namespace monarch
