#include "transport/zmq/zap.h"

#include <gtest/gtest.h>
#include <zmq.h>

#include <string>
#include <thread>

#include "tests/transport/zmq/zmq_lab.h"

namespace monarch {
namespace {

TEST(ZapHandler, LetsInAKeyThatTheTableGainsWhileItWaits) {
  ZmqLab lab({.unknown_key_wait = Duration::seconds(30)});
  lab.bind();
  const CurveKeyPair early = key_pair();
  const CurveKeyPair known = key_pair();
  lab.allow({{known.public_key, "worker/h2"}});
  const auto peer = lab.client(early);
  ASSERT_TRUE(lab.until([&] { return lab.counters().accepted == 1; }));
  // Others are answered while it waits.
  const auto other = lab.client(known);
  ASSERT_TRUE(lab.until([&] { return other->link->connected(); }));
  EXPECT_TRUE(peer->events.empty());
  lab.allow({{known.public_key, "worker/h2"}, {early.public_key, "worker/h1"}});
  ASSERT_TRUE(lab.until([&] { return peer->link->connected(); }));
  EXPECT_EQ(peer->events, std::vector<ClientEvent>{ClientEvent::kConnected});
  EXPECT_EQ(lab.counters().auth_refused, 0U);
}

TEST(ZapHandler, ThereIsOnePerContext) {
  ZmqLab lab;
  const auto second = ZapHandler::start(*lab.context);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kBusy);
}

TEST(ZapHandlerDeathTest, ItsEndEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ZmqLab lab;
        (void)zmq_ctx_shutdown(lab.context->native());
        lab.until([] { return false; });
      },
      "the thread that checks keys ended");
}

TEST(ZapSelfTest, PassesWithTheHandler) {
  ZmqLab lab({.unknown_key_wait = Duration::seconds(30)});  // the test does not wait for it
  const Status tested =
      zap_self_test(*lab.context, [&](AllowTable table) { return lab.zap->replace(std::move(table)); });
  EXPECT_TRUE(tested.ok()) << (tested.ok() ? "" : tested.error().message);
}

// A handler that answers 200 to everybody.
class LetsEverybodyIn {
 public:
  explicit LetsEverybodyIn(ZmqContext& context) : socket_(ZmqSocket::create(context, ZMQ_ROUTER).value()) {
    EXPECT_TRUE(socket_->bind("inproc://zeromq.zap.01").ok());
    EXPECT_TRUE(wake_.ok());
    thread_ = std::thread([this] { run(); });
  }
  ~LetsEverybodyIn() {
    EXPECT_TRUE((*wake_)->put(0));
    thread_.join();
  }
  LetsEverybodyIn(const LetsEverybodyIn&) = delete;
  LetsEverybodyIn& operator=(const LetsEverybodyIn&) = delete;

 private:
  void run() {
    while ((*wake_)->take_all().empty()) {
      zmq_pollitem_t items[] = {{socket_->native(), 0, ZMQ_POLLIN, 0},
                                {nullptr, (*wake_)->descriptor(), ZMQ_POLLIN, 0}};
      (void)zmq_poll(items, 2, -1);
      std::vector<ZmqFrame> frames;
      while (socket_->receive(frames, 9) == ZmqSocket::Taken::kMessage) {
        std::vector<ZmqFrame> reply;
        reply.push_back(std::move(frames[0]));
        for (const char* part : {"", "1.0"}) reply.push_back(ZmqFrame::copy(part));
        reply.push_back(std::move(frames[3]));
        for (const char* part : {"200", "OK", "anybody", ""}) reply.push_back(ZmqFrame::copy(part));
        EXPECT_TRUE(socket_->send(reply).ok());
      }
    }
  }

  std::unique_ptr<ZmqSocket> socket_;
  Result<std::unique_ptr<Inbox<int>>> wake_ = Inbox<int>::create(1);
  std::thread thread_;
};

TEST(ZapSelfTest, FailsWhenEverybodyIsLetIn) {
  ZmqLab lab({.with_handler = false});
  const LetsEverybodyIn fake(*lab.context);
  const Status tested = zap_self_test(*lab.context, [](const AllowTable&) { return Status(); });
  ASSERT_FALSE(tested.ok());
  EXPECT_NE(tested.error().message.find("a random key was let in"), std::string::npos) << tested.error().message;
}

TEST(ZapSelfTest, FailsWhenNobodyIsLetIn) {
  ZmqLab lab({.unknown_key_wait = Duration::zero()});
  const Status tested = zap_self_test(*lab.context, [&](AllowTable table) {
    table.users.clear();
    return lab.zap->replace(std::move(table));
  });
  ASSERT_FALSE(tested.ok());
  EXPECT_NE(tested.error().message.find("a key of the table was not let in"), std::string::npos);
}

}  // namespace
}  // namespace monarch
