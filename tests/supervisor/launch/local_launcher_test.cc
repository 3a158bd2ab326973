// The local launcher over a guard that the test plays: a real socket pair, no worker.

#include "supervisor/launch/local/local_launcher.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tests/supervisor/client/scratch.h"
#include "tests/transport/loop/loop_fixture.h"
#include "transport/wire/seqpacket_channel.h"
#include "transport/wire/socket_directory.h"

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
                             .runtime_directory = scratch_.path(),
                             .host_names = {"v1", "v2"}},
        LauncherHandlers{.on_launched = [](HostId, const LaunchedWorker&) {},
                         .on_failed = [this](HostId, LaunchFailure failure) { failed_ = std::move(failure.message); },
                         .on_ended =
                             [this](HostId, const std::string& how, bool) {
                               ended_ = how;
                               ++ends_;
                             }});
    Bootstrap bootstrap;
    bootstrap.host_name = "v1";
    launcher_->launch(HostId(0), bootstrap);
  }

  // With the marks of the host's.
  pid_t start_daemon() {
    (void)scratch_.write("daemon", "kill -STOP $$");
    const pid_t daemon = ::fork();
    if (daemon == 0) {
      const std::string job = JobUuid{}.to_text();
      if (::chdir(scratch_.path().c_str()) != 0) ::_exit(126);
      (void)::execl("/bin/sh", "monarch-worker", "daemon", "--job", job.c_str(), "--host", "v1", nullptr);
      ::_exit(127);
    }
    EXPECT_GT(daemon, 0);
    siginfo_t info{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(daemon), &info, WSTOPPED), 0);
    return daemon;
  }
  void keeper_ends(const RankEnd& end) {
    RankReport report;
    report.process.rank = {MeshId(0xFFFF'FFFFU), Rank(0)};
    report.process.generation = Generation{Term(1), 1};
    report.phase = RankPhase::kEnded;
    report.end = end;
    launcher_->on_changed(report);
  }
  static void end_daemon(pid_t daemon) {
    EXPECT_EQ(::kill(daemon, SIGKILL), 0);
    EXPECT_EQ(::waitpid(daemon, nullptr, 0), daemon);
  }
  void expect_waits_for(pid_t daemon) {
    EXPECT_FALSE(run_until([&] { return ended_.has_value(); }, Duration::milliseconds(100))) << *ended_;
    end_daemon(daemon);
    EXPECT_TRUE(run_until([&] { return ended_.has_value(); }));
  }

  Scratch scratch_;
  UniqueFd guards_end_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<LocalLauncher> launcher_;
  std::optional<std::string> failed_;
  std::optional<std::string> ended_;
  int ends_ = 0;
};

TEST_F(LocalLaunch, FailsAtOnceWhenTheGuardDiesWithTheOrderUnread) {
  guards_end_.reset();
  ASSERT_TRUE(run_until([&] { return failed_.has_value(); }));
  EXPECT_NE(failed_->find("guard has gone"), std::string::npos) << *failed_;
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); })) << "nothing was started, nothing is to be waited for";
}

TEST_F(LocalLaunch, TellsAnEndOnceHoweverOftenTheHostIsDestroyed) {
  guards_end_.reset();
  ASSERT_TRUE(run_until([&] { return failed_.has_value(); }));
  launcher_->destroy(HostId(0));
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_FALSE(run_until([&] { return ends_ > 1; }, Duration::milliseconds(50)));
}

// A process with the marks of the host's daemon stands for one that has not yet ended what its keeper left.
TEST_F(LocalLaunch, TellsNoEndWhileAnythingOfTheWorkerLives) {
  const pid_t daemon = start_daemon();
  keeper_ends({.kind = EndKind::kSignaled, .value = SIGKILL});
  launcher_->destroy(HostId(0));
  EXPECT_FALSE(run_until([&] { return ended_.has_value(); }, Duration::milliseconds(100))) << *ended_;
  EXPECT_EQ(::kill(daemon, SIGKILL), 0);
  EXPECT_EQ(::waitpid(daemon, nullptr, 0), daemon);
  EXPECT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_FALSE(run_until([&] { return ends_ > 1; }, Duration::milliseconds(50)));
}

// Its keeper was seen to end in order, and its daemon: no other process of this machine is looked at.
TEST_F(LocalLaunch, TellsAnEndAtOnceThatIsProvenByWhatIsInHand) {
  const pid_t daemon = start_daemon();
  launcher_->on_greeted(HostId(0), daemon);
  const pid_t stranger = start_daemon();
  end_daemon(daemon);
  keeper_ends({.kind = EndKind::kExited, .value = 0});
  EXPECT_TRUE(run_until([&] { return ended_.has_value(); }));
  end_daemon(stranger);
}

// What is missing of the proof is looked for among all processes, and this one has the host's marks.
TEST_F(LocalLaunch, LooksForWhatLivesWhereNobodySaidHello) {
  const pid_t daemon = start_daemon();
  keeper_ends({.kind = EndKind::kExited, .value = 0});
  expect_waits_for(daemon);
}

TEST_F(LocalLaunch, LooksForWhatLivesWhereWhoSaidHelloWasNoDaemon) {
  const pid_t daemon = start_daemon();
  launcher_->on_greeted(HostId(0), ::getpid());
  keeper_ends({.kind = EndKind::kExited, .value = 0});
  expect_waits_for(daemon);
}

TEST_F(LocalLaunch, LooksForWhatLivesWhereTheDaemonHasNotEnded) {
  const pid_t daemon = start_daemon();
  launcher_->on_greeted(HostId(0), daemon);
  keeper_ends({.kind = EndKind::kExited, .value = 0});
  expect_waits_for(daemon);
}

TEST_F(LocalLaunch, LooksForWhatLivesWhereTheKeeperWasKilled) {
  const pid_t daemon = start_daemon();
  launcher_->on_greeted(HostId(0), daemon);
  end_daemon(daemon);
  const pid_t next = start_daemon();  // which has said nothing yet
  keeper_ends({.kind = EndKind::kSignaled, .value = SIGKILL});
  expect_waits_for(next);
}

// Its exit code alone would say nothing of a limit that it has met.
TEST_F(LocalLaunch, SaysTheLastErrorOfAWorkerThatFailed) {
  UniqueFd workers_log;
  auto peer = SeqpacketChannel::create(
      loop(), std::move(guards_end_),
      {.on_frame = [&](const Frame&, std::vector<UniqueFd> fds) { workers_log = std::move(fds.at(2)); },
       .on_closed = [](const Error&) {}});
  ASSERT_TRUE(peer.ok());
  ASSERT_TRUE(run_until([&] { return workers_log.valid(); }));
  const std::string_view words =
      "2026-11-28T00:03:24.286Z 7 info [keeper v1] all is well\n"
      "2026-11-28T00:03:24.286Z 8 error [daemon v1] beating: no threads (22 at most: ulimit -u)\n"
      "2026-11-28T00:03:24.287Z 7 warning [keeper v1] the guarded process exited with 70\n";
  ASSERT_EQ(::write(workers_log.get(), words.data(), words.size()), static_cast<ssize_t>(words.size()));
  RankReport report;
  report.process.rank = {MeshId(0xFFFF'FFFFU), Rank(0)};
  report.process.generation = Generation{Term(1), 1};
  report.phase = RankPhase::kEnded;
  report.end = {.kind = EndKind::kExited, .value = 70};
  launcher_->on_changed(report);
  ASSERT_TRUE(run_until([&] { return failed_.has_value(); }));
  EXPECT_EQ(*failed_,
            "the worker ended before it told its key: exit code 70 (beating: no threads (22 at most: ulimit -u))");
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

TEST_F(LocalLaunch, RemovesWhatAWorkerLeftWhoseEndWasToldToASupervisorThatDied) {
  const std::string sockets = local_socket_directory(scratch_.path(), JobUuid{}, HostId(1));
  ASSERT_TRUE(make_socket_directory(sockets).ok());
  launcher_->on_hello(KeeperHello{});  // of a guard that knows of no worker
  launcher_->destroy(HostId(1));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_EQ(*ended_, "was not running");
  EXPECT_NE(::access(sockets.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace monarch
