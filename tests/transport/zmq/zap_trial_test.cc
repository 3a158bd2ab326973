#include "transport/zmq/zap_trial.h"

#include <gtest/gtest.h>
#include <zmq.h>

#include "tests/transport/zmq/zmq_lab.h"
#include "transport/base/clock.h"

namespace monarch {
namespace {

TEST(ZapTrial, PassesWithTheHandler) {
  ZmqLab lab({.unknown_key_wait = Duration::seconds(30)});
  const auto publish = [&](AllowTable table) { return lab.zap->replace(std::move(table)); };
  const auto trial = ZapTrial::start(*lab.context, publish).value();
  EXPECT_TRUE(trial->outcome().ok());
}

TEST(ZapTrial, TellsWhyItFailed) {
  ZmqLab lab({.unknown_key_wait = Duration::zero()});
  const auto publish = [&](AllowTable table) {
    table.users.clear();
    return lab.zap->replace(std::move(table));
  };
  const auto trial = ZapTrial::start(*lab.context, publish).value();
  const Status outcome = trial->outcome();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().message, "the self-test of the key check failed: a key of the table was not let in");
}

// A handler that says nothing to anybody: the self-test would wait for seconds.
TEST(ZapTrial, EndsWithWhoStartedIt) {
  ZmqLab lab({.with_handler = false});
  const auto silent = ZmqSocket::create(*lab.context, ZMQ_ROUTER).value();
  ASSERT_TRUE(silent->bind("inproc://zeromq.zap.01").ok());
  auto trial = ZapTrial::start(*lab.context, [](const AllowTable&) { return Status(); }).value();
  std::vector<ZmqFrame> asked;
  ASSERT_TRUE(lab.until([&] { return silent->receive(asked, 16) == ZmqSocket::Taken::kMessage; }));
  const Instant began = boot_now();
  trial.reset();
  EXPECT_LT(boot_now() - began, Duration::seconds(2));
}

// Who connects before the key check was tested waits, and gets in when it was.
TEST(ServerLink, LetsNobodyInBeforeItIsOpened) {
  ZmqLab lab;
  const CurveKeyPair keys = key_pair();
  lab.allow({{keys.public_key, "early"}});
  lab.server = ServerLink::listen(*lab.context, {}, lab.server_keys).value();
  lab.server->attach(*lab.loop, [&](InboundMessage&& message) { lab.inbound.push_back(std::move(message)); });
  const auto early = lab.client(keys);
  const UniqueFd raw = lab.raw_connection();  // stands behind it in the backlog, or before
  int turns = 0;
  EXPECT_TRUE(lab.until([&] { return ++turns > 50; }));
  EXPECT_TRUE(early->events.empty()) << "nobody has spoken to it";
  EXPECT_EQ(lab.counters().accepted, 0U);

  ASSERT_TRUE(lab.server->open().ok());
  ASSERT_TRUE(lab.until([&] { return early->saw(ClientEvent::kConnected) && lab.counters().accepted == 2; }));
  EXPECT_TRUE(early->send("hello").ok());
  EXPECT_TRUE(lab.until([&] { return lab.from("early") != nullptr; }));
}

TEST(ServerLink, ClosesItsPortThoughItWasNeverOpened) {
  ZmqLab lab;
  auto link = ServerLink::listen(*lab.context, {}, lab.server_keys).value();
  const std::uint16_t port = link->port();
  link.reset();
  EXPECT_TRUE(ServerLink::listen(*lab.context, {.ports = {port, port}}, lab.server_keys).ok());
}

}  // namespace
}  // namespace monarch
