// Over a real sshd, with the real worker installed on its "host", and a process there that carries the marks of a job.

#include "supervisor/drill/injector.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <variant>

#include "supervisor/launch/reach/job_reach.h"
#include "supervisor/launch/ssh/machines/reach_by_ssh.h"
#include "tests/supervisor/launch/ssh/ssh_server.h"
#include "tests/transport/loop/loop_fixture.h"
#include "transport/base/clock.h"
#include "transport/process/process_scan.h"
#include "transport/process/spawn.h"

namespace monarch::drill {
namespace {

constexpr HostId kHost(0);
const std::string kUuid = "0123456789abcdef0123456789abcdef";

class InjectorTest : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    const std::string lacks = SshServer::lacks();
    if (!lacks.empty()) GTEST_SKIP() << "this machine lacks " << lacks;
    worker_ = std::getenv("MONARCH_WORKER") == nullptr ? "" : std::getenv("MONARCH_WORKER");
    ASSERT_NE(worker_, "") << "MONARCH_WORKER names the executable under test";
    server_ = std::make_unique<SshServer>();
    ASSERT_EQ(server_->failure(), "");
    SpawnOptions options;
    options.program = {"/bin/sleep", "100"};
    options.environment = {"MONARCH_JOB_UUID=" + kUuid, "MONARCH_HOST=gpu7"};
    auto forked = Child::fork(options);
    ASSERT_TRUE(std::holds_alternative<std::unique_ptr<Child>>(forked));
    victim_ = std::move(std::get<std::unique_ptr<Child>>(forked));
    victim_->open_gate();
    ASSERT_TRUE(run_until([&] { return victim_->exec_state() == ExecState::kExecuted || look_often(); }));
    const ReachSurroundings around{
        .loop = loop(), .spec = spec_, .hosts = hosts_, .job = kUuid, .job_id = "demo-1a2b", .worker_path = worker_};
    reach_ = std::make_unique<JobReach>(
        around, reach_by_ssh(loop(), {.hosts = {{"gpu7", {server_->target()}}}, .installed = worker_}, 1));
    injector_ = std::make_unique<Injector>(loop(), *reach_, Duration::seconds(5));
  }
  void TearDown() override {
    injector_.reset();
    reach_.reset();
    if (victim_) {
      (void)::kill(victim_->pid(), SIGKILL);
      (void)::waitpid(victim_->pid(), nullptr, 0);
    }
    LoopTest::TearDown();
  }
  bool look_often() {
    (void)loop().at(loop().now() + Duration::milliseconds(10), [] {});
    return false;
  }
  char state() const { return read_process(victim_->pid())->state; }
  Injector::Ticket strike(StrikeOrder order, Duration lasts, Reached where = kHost) {
    order.job_uuid = kUuid;
    order.host = "gpu7";
    return injector_->strike(
        where, std::move(order), lasts, [this](const Injected& what) { injected_ = what; },
        [this](const Undone& what) { undone_ = what.error; });
  }
  bool is_injected() {
    return run_until([&] { return injected_.has_value(); }, Duration::seconds(60));
  }

  std::string worker_;
  std::unique_ptr<SshServer> server_;
  std::unique_ptr<Child> victim_;
  JobSpec spec_;
  std::vector<PoolHost> hosts_;
  std::unique_ptr<JobReach> reach_;
  std::unique_ptr<Injector> injector_;
  std::optional<Injected> injected_;
  std::optional<std::string> undone_;
};

TEST_F(InjectorTest, StopsAHostForATimeAndSaysWhenItGoesOn) {
  const WallTime before = wall_now();
  (void)strike({.what = StrikeWhat::kStop}, Duration::milliseconds(500));
  ASSERT_TRUE(is_injected());
  EXPECT_EQ(injected_->error, "");
  EXPECT_EQ(injected_->struck, std::vector<std::int32_t>{victim_->pid()});
  EXPECT_EQ(state(), 'T');
  EXPECT_GE(injected_->struck_at, before);
  EXPECT_GE(injected_->seen_at, injected_->struck_at);
  EXPECT_LE(injected_->seen_at, wall_now());
  EXPECT_GT(injected_->clock_error, Duration());
  EXPECT_FALSE(undone_.has_value());
  ASSERT_TRUE(run_until([&] { return undone_.has_value(); }, Duration::seconds(60)));
  EXPECT_EQ(*undone_, "");
  EXPECT_NE(state(), 'T');
}

TEST_F(InjectorTest, TakesBackBeforeItsTimeWhatItIsToldTo) {
  const Injector::Ticket ticket = strike({.what = StrikeWhat::kStop}, Duration::seconds(1'000));
  ASSERT_TRUE(is_injected());
  EXPECT_EQ(state(), 'T');
  injector_->undo(ticket);
  ASSERT_TRUE(run_until([&] { return undone_.has_value(); }, Duration::seconds(60)));
  EXPECT_EQ(*undone_, "");
  EXPECT_NE(state(), 'T');
  injector_->undo(ticket);  // it is over
}

TEST_F(InjectorTest, TakesEverythingBackWithItsEnd) {
  (void)strike({.what = StrikeWhat::kStop}, Duration::seconds(1'000));
  ASSERT_TRUE(is_injected());
  EXPECT_EQ(state(), 'T');
  injector_.reset();
  EXPECT_TRUE(run_until([&] { return state() != 'T' || look_often(); }, Duration::seconds(60)));
  EXPECT_FALSE(undone_.has_value()) << "nobody is told any more";
}

// As Slurm ends a step, and logind a session.
TEST_F(InjectorTest, LetsGoOnWhatItHasStoppedWhereTheCheckWasKilledWithItsGuard) {
  (void)strike({.what = StrikeWhat::kStop}, Duration::seconds(1'000));
  ASSERT_TRUE(is_injected());
  EXPECT_EQ(state(), 'T');
  const auto is_check = [](pid_t pid) {
    const std::vector<std::string> arguments = arguments_of(pid);
    return arguments.size() == 2 && arguments[1] == "check";
  };
  int guards = 0;
  for (const ProcessEntry& entry :
       with_descendants(list_processes(), [](const ProcessEntry& one) { return one.pid == ::getpid(); })) {
    if (!is_check(entry.pid) || !is_check(entry.parent)) continue;
    ++guards;
    (void)::kill(entry.pid, SIGKILL);
    (void)::kill(entry.parent, SIGKILL);
  }
  ASSERT_EQ(guards, 1);
  ASSERT_TRUE(run_until([&] { return undone_.has_value(); }, Duration::seconds(60)));
  EXPECT_EQ(*undone_, "");
  EXPECT_NE(state(), 'T');
}

// Sessions are threads, and who has threads forks no more.
TEST_F(InjectorTest, StrikesThisMachineBesideSessions) {
  const Injector::Ticket there = strike({.what = StrikeWhat::kStop}, Duration::seconds(1'000));
  ASSERT_TRUE(is_injected());
  injector_->undo(there);
  ASSERT_TRUE(run_until([&] { return undone_.has_value(); }, Duration::seconds(60)));
  injected_.reset();
  undone_.reset();
  const Injector::Ticket here = strike({.what = StrikeWhat::kStop}, Duration::seconds(1'000), std::nullopt);
  ASSERT_TRUE(is_injected());
  EXPECT_EQ(injected_->error, "");
  EXPECT_EQ(state(), 'T');
  injector_->undo(here);
  ASSERT_TRUE(run_until([&] { return undone_.has_value(); }, Duration::seconds(60)));
  EXPECT_EQ(*undone_, "");
  EXPECT_NE(state(), 'T');
}

TEST_F(InjectorTest, TellsWhyAFaultTookNoEffect) {
  (void)strike({.what = StrikeWhat::kKill, .whom = StrikeWhom::kDaemon}, Duration());
  ASSERT_TRUE(is_injected());
  EXPECT_EQ(injected_->error, "no daemon of the job is on this host");
  injected_.reset();
  server_ = std::make_unique<SshServer>();  // at another port
  (void)strike({.what = StrikeWhat::kStop}, Duration::seconds(1));
  ASSERT_TRUE(is_injected());
  EXPECT_NE(injected_->error.find("refused"), std::string::npos) << injected_->error;
}

}  // namespace
}  // namespace monarch::drill
