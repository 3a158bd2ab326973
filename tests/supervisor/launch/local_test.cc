// The local launcher over a guard that the test plays: a real socket pair, no worker.

#include "supervisor/launch/local.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/supervisor/client/scratch.h"
#include "tests/transport/loop/loop_fixture.h"
#include "transport/wire/seqpacket_channel.h"

namespace monarch {
namespace {

class LocalLaunch : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    guards_end_ = UniqueFd(ends[1]);
    auto guard = Guard::create(loop(), UniqueFd(ends[0]), JobUuid{},
                               {.on_hello = [](const KeeperHello&) {},
                                .on_changed = [this](const RankReport& report) { launcher_->on_changed(report); },
                                .on_lost = [this](const Error&) { launcher_->on_guard_lost(); }});
    ASSERT_TRUE(guard.ok()) << guard.error().message;
    guard_ = std::move(*guard);
    launcher_ = std::make_unique<LocalLauncher>(
        loop(), *guard_,
        LocalLauncherOptions{.job = JobUuid{},
                             .term = Term(1),
                             .worker_path = "/nonexistent/monarch-worker",
                             .log_directory = scratch_.path(),
                             .host_names = {"v1"}},
        LauncherHandlers{.on_launched = [](HostId, const LaunchedWorker&) {},
                         .on_failed = [this](HostId, LaunchFailure failure) { failed_ = std::move(failure.message); },
                         .on_ended = [this](HostId, const std::string& how, bool) { ended_ = how; }});
    Bootstrap bootstrap;
    bootstrap.host_name = "v1";
    launcher_->launch(HostId(0), bootstrap);
  }

  Scratch scratch_;
  UniqueFd guards_end_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<LocalLauncher> launcher_;
  std::optional<std::string> failed_;
  std::optional<std::string> ended_;
};

TEST_F(LocalLaunch, FailsAtOnceWhenTheGuardDiesWithTheOrderUnread) {
  guards_end_.reset();
  ASSERT_TRUE(run_until([&] { return failed_.has_value(); }));
  EXPECT_NE(failed_->find("guard has gone"), std::string::npos) << *failed_;
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); })) << "nothing was started, nothing is to be waited for";
}

TEST_F(LocalLaunch, WaitsForAWorkerThatHoldsItsOutputWhenTheGuardDies) {
  UniqueFd workers_output;
  auto peer = SeqpacketChannel::create(
      loop(), std::move(guards_end_),
      {.on_frame = [&](const Frame&, std::vector<UniqueFd> fds) { workers_output = std::move(fds.at(1)); },
       .on_closed = [](const Error&) {}});
  ASSERT_TRUE(peer.ok());
  ASSERT_TRUE(run_until([&] { return workers_output.valid(); }));
  peer->reset();
  ASSERT_FALSE(run_until([&] { return failed_.has_value(); }, Duration::milliseconds(50)));
  workers_output.reset();
  ASSERT_TRUE(run_until([&] { return failed_.has_value(); }));
}

}  // namespace
}  // namespace monarch
