// Viewers of another machine, here over loopback: what a viewer of this machine may, one that comes through the port
// may.

#include "supervisor/viewers/viewer_port.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <future>
#include <thread>

#include "supervisor/client/link/supervisor_client.h"
#include "supervisor/viewers/control_server.h"
#include "tests/supervisor/client/scratch.h"
#include "transport/base/clock.h"
#include "transport/zmq/curve.h"

namespace monarch {
namespace {

constexpr std::uint64_t kPast = 9'000;

// The supervisor, with a thread of its own: a viewer's requests wait for their answers.
class FarViewers : public ::testing::Test {
 protected:
  void SetUp() override {
    std::promise<void> ready;
    supervisor_ = std::thread([this, &ready] {
      loop_ = *EventLoop::create();
      ControlHandlers handlers;
      handlers.status = [this] {
        JobStatus status;
        status.job_id = "far-1a2b";
        status.phase = asked_.fetch_add(1) == 0 ? "starting" : "running";
        return status;
      };
      handlers.stop = [this](const StopRequest& request) { stopped_by_ = request.who; };
      server_ = *ControlServer::create(*loop_, path_, {}, std::move(handlers));
      for (std::uint64_t i = 1; i <= kPast; ++i) server_->remember(event(i));
      ready.set_value();
      while (!done_) {
        if (publish_.exchange(false) && server_ != nullptr) server_->publish(Verdict{.exit_code = 7});
        loop_->at(loop_->now() + Duration::milliseconds(5), [] {});
        loop_->run_once();
        if (leave_.exchange(false)) server_.reset();
      }
      server_.reset();
      loop_.reset();
    });
    ready.get_future().wait();
    auto port = ViewerPort::start({.address = "127.0.0.1", .socket = path_});
    ASSERT_TRUE(port.ok()) << port.error().message;
    port_ = std::move(*port);
    door_ = port_->take_address();
  }
  void TearDown() override {
    done_ = true;
    supervisor_.join();
  }

  static JobEvent event(std::uint64_t number) {
    JobEvent next;
    next.number = number;
    next.kind = EventKind::kGangRunning;
    next.message = std::string(200, 'x');
    return next;
  }
  ViewerAddress address() const {
    ViewerAddress far(path_);
    far.host = "elsewhere";
    far.far = door_;
    far.far->addresses = {"127.0.0.1"};
    return far;
  }

  Scratch scratch_;
  const std::string path_ = scratch_.path() + "/door";
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<ControlServer> server_;
  std::atomic<int> asked_ = 0;
  std::atomic<bool> publish_ = false;
  std::atomic<bool> leave_ = false;
  std::atomic<bool> done_ = false;
  std::string stopped_by_;
  std::unique_ptr<ViewerPort> port_;
  ViewerDoorAddress door_;
  std::thread supervisor_;
};

// One that writes down what it is told.
struct Watcher {
  explicit Watcher(const ViewerAddress& address) {
    auto made =
        SupervisorClient::connect(*loop, address,
                                  {.on_event = [this](const JobEvent& event) { numbers.push_back(event.number); },
                                   .on_verdict = [this](Verdict verdict) { verdicts.push_back(std::move(verdict)); },
                                   .on_closed = [this](const Error&) { closed = true; }});
    EXPECT_TRUE(made.ok()) << made.error().message;
    if (made.ok()) client = std::move(*made);
  }
  template <class Condition>
  bool until(Condition condition) {
    const Instant deadline = boot_now() + Duration::seconds(20);
    while (!condition()) {
      if (boot_now() >= deadline) return false;
      loop->at(loop->now() + Duration::milliseconds(20), [] {});
      loop->run_once();
    }
    return true;
  }

  std::unique_ptr<EventLoop> loop = *EventLoop::create();
  std::unique_ptr<SupervisorClient> client;
  std::vector<std::uint64_t> numbers;
  std::vector<Verdict> verdicts;
  bool closed = false;
};

TEST_F(FarViewers, AskAndAreAnswered) {
  const auto first = ask(address(), StatusRequest{});
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->phase, "starting");
  const auto second = ask(address(), StatusRequest{});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->phase, "running");
  EXPECT_TRUE(ask(address(), StopRequest{.who = "somebody far"}).ok());
  done_ = true;
  supervisor_.join();
  EXPECT_EQ(stopped_by_, "somebody far");
  supervisor_ = std::thread([] {});
}

TEST_F(FarViewers, HaveALongPastInOrderAlsoWhereTheyReadItLateAndTheVerdictLast) {
  Watcher watcher(address());
  ASSERT_TRUE(watcher.client->attach("test", 0).ok());
  // All buffers between are full by then.
  const Instant late = boot_now() + Duration::milliseconds(500);
  ASSERT_TRUE(Watcher(address()).until([&] { return boot_now() >= late; }));
  publish_ = true;
  ASSERT_TRUE(watcher.until([&] { return !watcher.verdicts.empty() || watcher.closed; }));
  EXPECT_FALSE(watcher.closed);
  ASSERT_EQ(watcher.numbers.size(), kPast);
  EXPECT_TRUE(std::is_sorted(watcher.numbers.begin(), watcher.numbers.end()));
  EXPECT_EQ(watcher.verdicts[0].exit_code, 7);
}

TEST_F(FarViewers, HearTheEndOfTheSupervisorBehindAllThatItSaid) {
  Watcher watcher(address());
  ASSERT_TRUE(watcher.client->attach("test", kPast - 10).ok());
  ASSERT_TRUE(watcher.until([&] { return watcher.numbers.size() == 10; }));
  leave_ = true;
  ASSERT_TRUE(watcher.until([&] { return watcher.closed; }));
  const auto status = ask(address(), StatusRequest{});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kGone) << status.error().message;
}

TEST_F(FarViewers, AreToldWhatIsOnItsWayWhenThePortCloses) {
  Watcher watcher(address());
  ASSERT_TRUE(watcher.client->attach("test", 0).ok());
  publish_ = true;
  ASSERT_TRUE(watcher.until([&] { return watcher.numbers.size() > 100; }));
  leave_ = true;
  std::thread closes([this] { port_.reset(); });
  EXPECT_TRUE(watcher.until([&] { return watcher.closed; }));
  closes.join();
}

TEST_F(FarViewers, WithoutTheKeyGetNothing) {
  ViewerAddress stranger = address();
  const CurveKeyPair own = *make_curve_key_pair();
  stranger.far->public_key = own.public_key.to_text();
  stranger.far->secret_key = own.secret_key.text_for_file();
  const auto status = ask(stranger, StatusRequest{});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kGone) << status.error().message;
  EXPECT_NE(status.error().message.find("other keys"), std::string::npos) << status.error().message;
  EXPECT_EQ(asked_, 0);
}

TEST_F(FarViewers, FindTheAddressThatAnswersAmongOthers) {
  ViewerAddress several = address();
  // Of 127.0.0.0/8 the port listens at one alone.
  several.far->addresses = {"127.0.0.99", "127.0.0.1", "127.0.0.98"};
  EXPECT_TRUE(ask(several, StatusRequest{}).ok());
}

TEST_F(FarViewers, SayWhereNobodyAnswers) {
  ViewerAddress nobody = address();
  nobody.far->addresses = {"127.0.0.99"};
  const auto link = FarLink::connect(nobody, Duration::milliseconds(300));
  ASSERT_FALSE(link.ok());
  EXPECT_EQ(link.error().code, ErrorCode::kGone);
  EXPECT_NE(link.error().message.find("127.0.0.99"), std::string::npos) << link.error().message;
}

TEST_F(FarViewers, ArePoliteAboutHowManyTheyAre) {
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (std::size_t i = 0; i < ViewerPort::kViewers; ++i) {
    watchers.push_back(std::make_unique<Watcher>(address()));
    ASSERT_TRUE(watchers.back()->client->attach("test", kPast - 1).ok());
    ASSERT_TRUE(watchers.back()->until([&] { return !watchers.back()->numbers.empty(); })) << i;
  }
  const auto refused = ask(address(), StatusRequest{});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("too many viewers"), std::string::npos) << refused.error().message;
  watchers.pop_back();
  ASSERT_TRUE(watchers.back()->until([&] { return ask(address(), StatusRequest{}).ok(); }));
}

}  // namespace
}  // namespace monarch
