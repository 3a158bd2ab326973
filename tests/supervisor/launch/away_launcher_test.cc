#include "supervisor/launch/away_launcher.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/transport/loop/loop_fixture.h"
#include "transport/base/text.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/launch.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_socket.h"

namespace monarch {
namespace {

const HostId kFirst(0);
const HostId kSecond(1);

class Relayed : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    make(Duration::seconds(30));
  }

  void make(Duration awaited) {
    launcher_ = std::make_unique<AwayLauncher>(
        loop(),
        AwayLauncherOptions{.job = job_,
                            .term = Term(4),
                            .hosts = 2,
                            .awaited = awaited,
                            .on_out_of_reach = [this](HostId host) { out_of_reach_.push_back(host.value()); }},
        LauncherHandlers{
            .on_launched = [this](HostId host, const LaunchedWorker& worker) { launched_.emplace_back(host, worker); },
            .on_failed = [this](HostId host, const LaunchFailure& failure) { failed_.emplace_back(host, failure); },
            .on_ended = [this](HostId host, const std::string& how, bool) { ended_.emplace_back(host, how); }});
  }

  // Somebody comes who would launch.
  Status come() {
    auto pair = make_channel_pair();
    EXPECT_TRUE(pair.ok());
    Status taken = launcher_->take(std::move(pair->first));
    if (!taken.ok()) return taken;
    peer_ =
        *SeqpacketChannel::create(loop(), std::move(pair->second),
                                  {.on_frame = [this](Frame frame, std::vector<UniqueFd>) { told_.push_back(frame); },
                                   .on_closed = [this](const Error&) { peer_closed_ = true; }});
    return taken;
  }
  template <class Message>
  bool is_told() {
    return run_until([&] { return !told_.empty() && is_a<Message>(told_.back().header); });
  }
  template <class Message>
  void say(const Message& message) {
    ASSERT_TRUE(peer_->send(frame_of(message)).ok());
  }
  static Bootstrap bootstrap() { return {.host_name = "gpu7"}; }
  void launched(HostId host) {
    launcher_->launch(host, bootstrap());
    say(HostLaunched{.host = host.value(), .worker = {.control_endpoint = "tcp://10.0.0.1:7"}});
    ASSERT_TRUE(run_until([&] { return !launched_.empty(); }));
  }

  JobUuid job_{{1, 2, 3}};
  std::unique_ptr<AwayLauncher> launcher_;
  std::unique_ptr<SeqpacketChannel> peer_;
  bool peer_closed_ = false;
  std::vector<Frame> told_;
  std::vector<std::pair<HostId, LaunchedWorker>> launched_;
  std::vector<std::pair<HostId, LaunchFailure>> failed_;
  std::vector<std::pair<HostId, std::string>> ended_;
  std::vector<std::uint32_t> out_of_reach_;
};

TEST_F(Relayed, TellsWhoComesTheJobTheTermAndWhatWasWanted) {
  launcher_->launch(kSecond, bootstrap());
  ASSERT_TRUE(come().ok());
  ASSERT_TRUE(is_told<LaunchHost>());
  ASSERT_EQ(told_.size(), 2U);
  EXPECT_TRUE(is_a<LauncherWelcome>(told_[0].header));
  EXPECT_EQ(told_[0].header.job, job_);
  EXPECT_EQ(told_[0].header.term, Term(4));
  const auto order = decode_payload<LaunchHost>(told_[1].payload);
  ASSERT_TRUE(order.ok());
  EXPECT_EQ(order->host, 1U);
  EXPECT_EQ(order->bootstrap.host_name, "gpu7");
}

TEST_F(Relayed, PassesOnWhatCameOfALaunch) {
  ASSERT_TRUE(come().ok());
  launched(kFirst);
  EXPECT_EQ(launched_[0].second.control_endpoint, "tcp://10.0.0.1:7");
  launcher_->launch(kSecond, bootstrap());
  say(HostNotLaunched{
      .host = 1,
      .failure = {.kind = LaunchFailureKind::kDiskFull, .phase = "copy", .message = "no room", .again = "ssh gpu8"}});
  ASSERT_TRUE(run_until([&] { return !failed_.empty(); }));
  EXPECT_EQ(failed_[0].first, kSecond);
  EXPECT_EQ(failed_[0].second.kind, LaunchFailureKind::kDiskFull);
  EXPECT_EQ(failed_[0].second.phase, "copy");
  EXPECT_EQ(failed_[0].second.again, "ssh gpu8");
}

TEST_F(Relayed, HearsNothingMoreOfWhoNamesAKindThatThereIsNot) {
  ASSERT_TRUE(come().ok());
  launcher_->launch(kFirst, bootstrap());
  say(HostNotLaunched{.host = 0, .failure = {.kind = static_cast<LaunchFailureKind>(255)}});
  ASSERT_TRUE(run_until([&] { return !failed_.empty(); }));
  EXPECT_EQ(failed_[0].second.kind, LaunchFailureKind::kLauncherGone);
}

TEST_F(Relayed, HasAWorkerEndedByWhoLaunchedIt) {
  ASSERT_TRUE(come().ok());
  launched(kFirst);
  launcher_->destroy(kFirst);
  ASSERT_TRUE(is_told<EndHost>());
  EXPECT_FALSE(launcher_->has_idle_helper());
  say(HostEnded{.host = 0, .how = "2 processes ended by order"});
  ASSERT_TRUE(run_until([&] { return !ended_.empty(); }));
  EXPECT_EQ(ended_[0].second, "2 processes ended by order");
  EXPECT_TRUE(launcher_->has_idle_helper());
}

TEST_F(Relayed, ALaunchThatIsAnsweredAfterItsEndWasOrderedIsNotTold) {
  ASSERT_TRUE(come().ok());
  launcher_->launch(kFirst, bootstrap());
  launcher_->destroy(kFirst);
  say(HostLaunched{.host = 0});
  say(HostEnded{.host = 0, .how = "ended"});
  ASSERT_TRUE(run_until([&] { return !ended_.empty(); }));
  EXPECT_TRUE(launched_.empty());
}

TEST_F(Relayed, AWorkersGoodbyeIsItsEndAndIsPassedOn) {
  ASSERT_TRUE(come().ok());
  launched(kFirst);
  launcher_->on_goodbye(kFirst, true);
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(ended_[0].second, "it left");
  ASSERT_TRUE(is_told<HostSaidGoodbye>());
  say(HostEnded{.host = 0, .how = "again"});
  launcher_->launch(kSecond, bootstrap());
  ASSERT_TRUE(is_told<LaunchHost>());
  EXPECT_EQ(ended_.size(), 1U);
}

TEST_F(Relayed, WhoGoesInTheMiddleFailsWhatIsOpen) {
  ASSERT_TRUE(come().ok());
  launched(kFirst);
  launcher_->launch(kSecond, bootstrap());
  peer_.reset();
  ASSERT_TRUE(run_until([&] { return !failed_.empty(); }));
  EXPECT_EQ(failed_[0].first, kSecond);
  EXPECT_EQ(failed_[0].second.kind, LaunchFailureKind::kLauncherGone);
  EXPECT_NE(failed_[0].second.message.find("has gone"), std::string::npos);
  // Something of it may run, and so may the first: neither is told to have ended.
  launcher_->destroy(kSecond);
  launcher_->destroy(kFirst);
  ASSERT_TRUE(run_until([&] { return out_of_reach_.size() == 2; }));
  EXPECT_TRUE(ended_.empty());
  launcher_->on_goodbye(kFirst, true);
  EXPECT_EQ(ended_.size(), 1U);
}

TEST_F(Relayed, WhoNeverComesFailsAllAndNothingRuns) {
  make(Duration::milliseconds(20));
  launcher_->launch(kFirst, bootstrap());
  ASSERT_TRUE(run_until([&] { return !failed_.empty(); }));
  EXPECT_EQ(failed_[0].second.kind, LaunchFailureKind::kLauncherGone);
  EXPECT_NE(failed_[0].second.message.find("did not come within 20ms"), std::string::npos) << failed_[0].second.message;
  launcher_->destroy(kFirst);
  ASSERT_TRUE(run_until([&] { return !ended_.empty(); }));
  EXPECT_EQ(ended_[0].second, "was not running");
  EXPECT_EQ(come().error().code, ErrorCode::kGone);
}

TEST_F(Relayed, ASupervisorThatComesBackAwaitsNobody) {
  make(Duration::zero());
  EXPECT_EQ(come().error().code, ErrorCode::kGone);
  launcher_->destroy(kFirst);
  ASSERT_TRUE(run_until([&] { return !out_of_reach_.empty(); }));
  EXPECT_TRUE(ended_.empty());
}

TEST_F(Relayed, OneAtATimeLaunches) {
  ASSERT_TRUE(come().ok());
  auto pair = make_channel_pair();
  ASSERT_TRUE(pair.ok());
  EXPECT_EQ(launcher_->take(std::move(pair->first)).error().code, ErrorCode::kBusy);
}

TEST_F(Relayed, LetsItGoOnceTheStartIsOver) {
  ASSERT_TRUE(come().ok());
  launched(kFirst);
  EXPECT_TRUE(launcher_->has_idle_helper());
  launcher_->release_helper("the job runs");
  ASSERT_TRUE(run_until([&] { return peer_closed_; }));
  const auto leave = decode_payload<LeaveLauncher>(told_.back().payload);
  ASSERT_TRUE(leave.ok());
  EXPECT_EQ(leave->reason, "the job runs");
  launcher_->launch(kSecond, bootstrap());
  ASSERT_TRUE(run_until([&] { return !failed_.empty(); }));
  EXPECT_NE(failed_[0].second.message.find("for the start alone"), std::string::npos) << failed_[0].second.message;
  launcher_->destroy(kFirst);
  ASSERT_TRUE(run_until([&] { return !out_of_reach_.empty(); }));
}

TEST_F(Relayed, WhoSaysWhatCannotBeMeantIsLetGo) {
  ASSERT_TRUE(come().ok());
  launcher_->launch(kFirst, bootstrap());
  say(HostLaunched{.host = 2});
  ASSERT_TRUE(run_until([&] { return !failed_.empty(); }));
  EXPECT_EQ(failed_[0].second.kind, LaunchFailureKind::kLauncherGone);
}

}  // namespace
}  // namespace monarch
