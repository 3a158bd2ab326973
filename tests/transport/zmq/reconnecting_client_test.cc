// A client that comes back: after a refusal, after another server's key, after its server left, and when its queue was
// full.

#include "transport/zmq/reconnecting_client.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/transport/zmq/zmq_lab.h"
#include "transport/base/clock.h"

namespace monarch {
namespace {

TEST(ReconnectingClient, ComesBackWithANewSocketAfterARefusal) {
  ZmqLab lab({.unknown_key_wait = Duration::zero()});
  lab.bind();
  const CurveKeyPair keys = key_pair();
  int refused = 0;
  int connected = 0;
  std::vector<std::string> messages;
  auto client = ReconnectingClient::start(
      *lab.context, *lab.loop, lab.client_options(), keys, 7,
      {.on_message = [&](std::vector<ZmqFrame>&& frames) { messages.emplace_back(frames[0].bytes()); },
       .on_connected = [&] { ++connected; },
       .on_disconnected = [] {},
       .on_refused =
           [&](const Error& why) {
             EXPECT_EQ(why.code, ErrorCode::kGone);
             ++refused;
           }});
  ASSERT_TRUE(client.ok());
  ASSERT_TRUE(lab.until([&] { return refused == 2; }));
  EXPECT_FALSE((*client)->connected());
  auto early = one_frame("early");
  EXPECT_EQ((*client)->send(early).error().code, ErrorCode::kGone);
  lab.allow({{keys.public_key, "worker/h1"}});
  ASSERT_TRUE(lab.until([&] { return connected == 1; }));
  auto hello = one_frame("hello");
  ASSERT_TRUE((*client)->send(hello).ok());
  ASSERT_TRUE(lab.until([&] { return lab.from("worker/h1") != nullptr; }));
  auto answer = one_frame("welcome");
  ASSERT_TRUE(lab.server->send(lab.from("worker/h1")->link, answer).ok());
  ASSERT_TRUE(lab.until([&] { return messages == std::vector<std::string>{"welcome"}; }));
  EXPECT_TRUE((*client)->connected());
}

TEST(ReconnectingClient, BacksOffFromAServerWithAnotherKey) {
  ZmqLab lab;
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  auto options = lab.client_options();
  options.server_key = key_pair().public_key;
  std::vector<ErrorCode> refused;
  auto client = ReconnectingClient::start(*lab.context, *lab.loop, options, keys, 7,
                                          {.on_message = [](std::vector<ZmqFrame>&&) {},
                                           .on_connected = [] {},
                                           .on_disconnected = [] {},
                                           .on_refused = [&](const Error& why) { refused.push_back(why.code); }});
  ASSERT_TRUE(client.ok());
  ASSERT_TRUE(lab.until([&] { return refused.size() == 3; }));
  EXPECT_EQ(refused, std::vector<ErrorCode>(3, ErrorCode::kTimeout));
}

// It says nothing of a server that is not there, and tries again: then its loop has a timer.
TEST(ReconnectingClient, HearsAtOnceWhatBecomesOfALinkThatIsNotUpYet) {
  constexpr int kTries = 50;  // of a machine that is busy with others
  constexpr std::uint16_t kNobodyListens = 1;
  const CurveKeyPair keys = key_pair();
  bool at_once = false;
  for (int tries = 0; tries < kTries && !at_once; ++tries) {
    const auto context = ZmqContext::create({}).value();
    const auto events = EventLoop::create().value();
    ZmqLoop loop(*events);
    loop.turn(boot_now());  // what is looked at seldom is looked at again kSeldomEvery after this
    const Instant looked = events->now();
    ClientOptions options;
    options.port = kNobodyListens;
    const auto client = ReconnectingClient::start(*context, loop, options, keys, 7,
                                                  {.on_message = [](std::vector<ZmqFrame>&&) {},
                                                   .on_connected = [] {},
                                                   .on_disconnected = [] {},
                                                   .on_refused = [](const Error&) {}});
    ASSERT_TRUE(client.ok());
    const Instant deadline = boot_now() + Duration::seconds(10);
    while (events->next_due() == Instant::never() && boot_now() < deadline) loop.turn(deadline);
    ASSERT_NE(events->next_due(), Instant::never());
    at_once = events->now() < looked + ZmqLoop::kSeldomEvery;
  }
  EXPECT_TRUE(at_once);
}

TEST(ReconnectingClient, SaysWhenAServerLeavesAndWhenItIsBack) {
  ZmqLab lab;
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  std::vector<std::string> said;
  auto client = ReconnectingClient::start(*lab.context, *lab.loop, lab.client_options(), keys, 7,
                                          {.on_message = [](std::vector<ZmqFrame>&&) {},
                                           .on_connected = [&] { said.emplace_back("connected"); },
                                           .on_disconnected = [&] { said.emplace_back("disconnected"); },
                                           .on_refused = [&](const Error&) { said.emplace_back("refused"); }});
  ASSERT_TRUE(client.ok());
  ASSERT_TRUE(lab.until([&] { return said.size() == 1; }));
  const std::uint16_t port = lab.server->port();
  lab.server.reset();
  ASSERT_TRUE(lab.until([&] { return said.size() == 2; }));
  ASSERT_TRUE(lab.bind_again(port));
  ASSERT_TRUE(lab.until([&] { return said.size() == 3; }));
  EXPECT_EQ(said, (std::vector<std::string>{"connected", "disconnected", "connected"}));
}

TEST(ReconnectingClient, ToldWhenAFullQueueTakesMessagesAgain) {
  ZmqLab lab;
  lab.bind();
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "worker/h1"}});
  auto options = lab.client_options();
  options.link.high_water_mark = 4;
  auto client = ReconnectingClient::start(*lab.context, *lab.loop, options, keys, 7,
                                          {.on_message = [](std::vector<ZmqFrame>&&) {},
                                           .on_connected = [] {},
                                           .on_disconnected = [] {},
                                           .on_refused = [](const Error&) {}});
  ASSERT_TRUE(client.ok());
  ASSERT_TRUE(lab.until([&] { return (*client)->connected(); }));
  const std::string payload(256U << 10U, 'x');
  Status sent;
  while (sent.ok()) {  // the loop does not turn: nobody reads
    auto frames = one_frame(payload);
    sent = (*client)->send(frames);
  }
  ASSERT_EQ(sent.error().code, ErrorCode::kBusy);
  bool writable = false;
  (*client)->when_writable([&] { writable = true; });
  ASSERT_TRUE(lab.until([&] { return writable; }));
  auto frames = one_frame(payload);
  EXPECT_TRUE((*client)->send(frames).ok());
}

}  // namespace
}  // namespace monarch
