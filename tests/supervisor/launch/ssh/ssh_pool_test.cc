// The pool of sessions: bounded, told by the loop, tried again where that helps, cancelled at once. Over a real sshd.

#include "supervisor/launch/ssh/ssh_pool.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <thread>

#include "tests/supervisor/launch/ssh/ssh_server.h"
#include "tests/transport/loop/loop_fixture.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

class SshPoolTest : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    const std::string lacks = SshServer::lacks();
    if (!lacks.empty()) GTEST_SKIP() << "this machine lacks " << lacks;
  }

  void open(SshPoolOptions options) {
    auto pool = SshPool::create(loop(), options);
    ASSERT_TRUE(pool.ok());
    pool_ = std::move(*pool);
  }

  SshPool::Ticket submit(
      const SshTarget& target, std::function<void()> in_thread = [] {}) {
    return pool_->submit({.route = {target},
                          .talk =
                              [this, in_thread](SshSession&, int) {
                                in_thread();
                                return [this] { ++done_; };
                              },
                          .on_failed = [this](LaunchFailure failure) { failures_.push_back(std::move(failure)); }});
  }

  bool all_told(std::size_t count) {
    return run_until([&] { return done_ + failures_.size() == count; }, Duration::seconds(60));
  }

  std::unique_ptr<SshPool> pool_;
  std::size_t done_ = 0;
  std::vector<LaunchFailure> failures_;
};

TEST_F(SshPoolTest, RunsNoMoreAtATimeThanItMay) {
  const SshServer server("ed25519", "MaxStartups 100");
  ASSERT_EQ(server.failure(), "");
  open({.parallel = 3});
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  for (int i = 0; i < 12; ++i) {
    submit(server.target(), [&] {
      const int running = ++now;
      int seen = most;
      while (running > seen && !most.compare_exchange_weak(seen, running)) continue;
      (void)::poll(nullptr, 0, 20);  // long enough for others to come in, if they could
      --now;
    });
  }
  EXPECT_LE(pool_->running(), 3U);
  ASSERT_TRUE(all_told(12));
  EXPECT_EQ(done_, 12U);
  EXPECT_GE(most, 2);
  EXPECT_LE(most, 3);
}

TEST_F(SshPoolTest, GetsEverySessionThroughADoorThatTakesFewAtATime) {
  const SshServer server("ed25519", "MaxStartups 2");
  ASSERT_EQ(server.failure(), "");
  open({.parallel = 8, .attempts = 10, .first_wait = Duration::milliseconds(50), .seed = 7});
  for (int i = 0; i < 16; ++i) submit(server.target());
  ASSERT_TRUE(all_told(16));
  for (const LaunchFailure& failure : failures_) ADD_FAILURE() << failure.message;
  EXPECT_NE(server.log().find("MaxStartups"), std::string::npos) << "no session was ever turned away";
}

TEST_F(SshPoolTest, TellsAFailureThatNoRetryMendsAtOnce) {
  const SshServer server;
  ASSERT_EQ(server.failure(), "");
  open({.first_wait = Duration::seconds(600)});
  SshTarget stranger = server.target();
  stranger.known_hosts.clear();
  submit(stranger);
  ASSERT_TRUE(all_told(1));
  ASSERT_EQ(failures_.size(), 1U);
  EXPECT_EQ(failures_[0].kind, LaunchFailureKind::kHostKeyUnknown);
}

// Takes connections and says nothing.
class SilentPort {
 public:
  SilentPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_.get(), generic, size), 0);
    EXPECT_EQ(::getsockname(socket_.get(), generic, &size), 0);
    EXPECT_EQ(::listen(socket_.get(), 64), 0);
    port_ = ntohs(address.sin_port);
  }
  SshTarget target(Duration timeout) const {
    SshTarget target;
    target.name = "gpu7";
    target.address = "127.0.0.1";
    target.port = port_;
    target.user = "alice";
    target.connect_timeout = timeout;
    return target;
  }

 private:
  UniqueFd socket_;
  std::uint16_t port_ = 0;
};

TEST_F(SshPoolTest, GivesUpAfterItsAttemptsAndSaysHowMany) {
  const SilentPort port;
  open({.attempts = 3, .first_wait = Duration::milliseconds(10)});
  submit(port.target(Duration::milliseconds(100)));
  ASSERT_TRUE(all_told(1));
  ASSERT_EQ(failures_.size(), 1U);
  EXPECT_EQ(failures_[0].kind, LaunchFailureKind::kTimeout);
  EXPECT_NE(failures_[0].message.find("(3 attempts)"), std::string::npos) << failures_[0].message;
  EXPECT_GE(failures_[0].elapsed, Duration::milliseconds(330));
}

TEST_F(SshPoolTest, TellsNothingOfWhatWasCancelledAndLetsTheNextIn) {
  const SilentPort port;
  open({.parallel = 1});
  const auto running = submit(port.target(Duration::seconds(600)));
  const auto queued = submit(port.target(Duration::seconds(600)));
  submit(port.target(Duration::milliseconds(50)));
  pool_->cancel(queued);
  bool gone = false;
  pool_->cancel(running, [&](SshPool::Talk talk) { gone = talk == SshPool::Talk::kNever; });
  EXPECT_EQ(pool_->running(), 1U);
  ASSERT_TRUE(run_until([&] { return gone; }));
  ASSERT_TRUE(run_until([&] { return pool_->running() == 0; }));
  EXPECT_EQ(pool_->waiting(), 1U);  // the third has tried, and rests
  EXPECT_TRUE(failures_.empty());
}

TEST_F(SshPoolTest, EndsAtOnceWithSessionsUnderWay) {
  const SilentPort port;
  open({});
  for (int i = 0; i < 8; ++i) submit(port.target(Duration::seconds(600)));
  const Instant began = boot_now();
  pool_.reset();
  EXPECT_LT(boot_now() - began, Duration::seconds(10));
}

TEST_F(SshPoolTest, KeepsSessionsThatStayBeyondItsNumber) {
  const SshServer server;
  ASSERT_EQ(server.failure(), "");
  open({.parallel = 1});
  std::vector<std::string> told;
  const auto stay = [&](const std::string& name) {
    return pool_->submit({.route = {server.target()},
                          .talk =
                              [&, name](SshSession& session, int) {
                                SshVisit visit([&told, name] { told.push_back(name + " stays"); });
                                visit.stay = [&told, &session, name](int cancel) {
                                  EXPECT_TRUE(session.local_address().ok());
                                  pollfd wanted{cancel, POLLIN, 0};
                                  EXPECT_EQ(::poll(&wanted, 1, name == "short" ? 0 : -1), name == "short" ? 0 : 1);
                                  return [&told, name] { told.push_back(name + " ended"); };
                                };
                                return visit;
                              },
                          .on_failed = [this](LaunchFailure failure) { failures_.push_back(std::move(failure)); }});
  };
  const auto first = stay("first");
  stay("second");
  stay("short");
  ASSERT_TRUE(run_until([&] { return told.size() == 4; }, Duration::seconds(60)));
  EXPECT_EQ(told, (std::vector<std::string>{"first stays", "second stays", "short stays", "short ended"}));
  EXPECT_EQ(pool_->staying(), 2U);
  EXPECT_EQ(pool_->running(), 0U);
  bool gone = false;
  pool_->cancel(first, [&](SshPool::Talk talk) { gone = talk == SshPool::Talk::kBegun; });
  ASSERT_TRUE(run_until([&] { return gone; }));
  EXPECT_EQ(pool_->staying(), 1U);
  EXPECT_EQ(told.size(), 4U) << "nothing is told of what was cancelled";
  EXPECT_TRUE(failures_.empty());
}

}  // namespace
}  // namespace monarch
