// With the real worker, over each launcher's own way that needs no sshd; srun and squeue are scripts.

#include "supervisor/launch/reach/check_reach.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <variant>

#include "supervisor/drill/injector.h"
#include "supervisor/launch/command/command_spec.h"
#include "supervisor/launch/slurm/slurm_requests.h"
#include "supervisor/launch/slurm/slurm_spec.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "tests/supervisor/client/scratch.h"
#include "tests/transport/loop/loop_fixture.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/process/process_scan.h"
#include "transport/process/spawn.h"

namespace monarch {
namespace {

constexpr HostId kHost(0);
const std::string kUuid = "0123456789abcdef0123456789abcdef";
const JobUuid kJob{{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}};

class CheckReachTest : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    (void)::signal(SIGPIPE, SIG_IGN);  // as monarch does
    const char* worker = std::getenv("MONARCH_WORKER");
    ASSERT_NE(worker, nullptr) << "MONARCH_WORKER names the executable under test";
    worker_ = worker;
    auto forked = Child::fork(
        {.program = {"/bin/sleep", "100"}, .environment = {"MONARCH_JOB_UUID=" + kUuid, "MONARCH_HOST=v1"}});
    ASSERT_TRUE(std::holds_alternative<std::unique_ptr<Child>>(forked));
    victim_ = std::move(std::get<std::unique_ptr<Child>>(forked));
    victim_->open_gate();
    ASSERT_TRUE(run_until([&] { return victim_->exec_state() == ExecState::kExecuted || look_often(); }));
  }
  void TearDown() override {
    talk_.reset();
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
  void open(Launch launch = {}) {
    talk_.reset();
    spec_.launch = std::move(launch);
    auto opened = open_reach({.loop = loop(),
                              .spec = spec_,
                              .hosts = hosts_,
                              .job = kJob.to_text(),
                              .job_id = "demo-1a2b",
                              .worker_path = worker_});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    reach_ = std::move(*opened);
  }
  void open_talk(Reached where) {
    lost_.reset();
    talk_ = reach_->open(where, [this](const LaunchFailure& why) { lost_ = why.message; });
  }
  // Why it failed.
  std::string ask(HostTalk& talk, const CheckRequest& request) {
    bool answered = false;
    std::string failure;
    talk.ask(request, [&](const CheckOutcome& outcome) {
      answered = true;
      const auto* failed = std::get_if<LaunchFailure>(&outcome);
      if (failed != nullptr) failure = failed->message;
      if (failed == nullptr) answer_ = std::get<TimedAnswer>(outcome);
    });
    EXPECT_FALSE(answered) << "within the call";
    EXPECT_TRUE(run_until([&] { return answered; }, Duration::seconds(60)));
    return failure;
  }
  StrikeOrder stop() const { return {.what = StrikeWhat::kStop, .job_uuid = kUuid, .host = "v1"}; }
  void strike_by_talk() {
    ASSERT_EQ(ask(*talk_, {.life = Duration::seconds(100), .strike = stop()}), "");
    ASSERT_EQ(answer_.answer.struck->error, "");
    ASSERT_EQ(state(), 'T');
  }
  char state() const { return read_process(victim_->pid())->state; }
  bool goes_on() {
    return run_until([&] { return state() != 'T' || look_often(); }, Duration::seconds(60));
  }
  // Of this process, and not forked for the test itself.
  std::vector<pid_t> checks() const {
    std::vector<pid_t> found;
    for (const pid_t child : children_of(::getpid())) {
      const std::vector<std::string> words = arguments_of(child);
      if (!words.empty() && words.back() == "check") found.push_back(child);
    }
    return found;
  }
  std::string words_of(const std::string& name) const {
    std::ifstream file(text(scratch_.path(), "/", name));
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }

  Scratch scratch_;
  std::string worker_;
  JobSpec spec_;
  std::vector<PoolHost> hosts_;
  std::unique_ptr<Child> victim_;
  std::unique_ptr<CheckReach> reach_;
  std::unique_ptr<HostTalk> talk_;
  std::optional<std::string> lost_;
  TimedAnswer answer_;
  std::unique_ptr<drill::Injector> injector_;
};

TEST_F(CheckReachTest, TakesBackAtATalksEnd) {
  open();
  open_talk(kHost);
  const WallTime before = wall_now();
  strike_by_talk();
  EXPECT_GE(answer_.left, before);
  EXPECT_GE(answer_.answer.received, answer_.left);
  EXPECT_GE(answer_.answer.answered, answer_.answer.struck->seen_at);
  EXPECT_GE(answer_.came, answer_.answer.answered);
  talk_.reset();
  EXPECT_TRUE(goes_on());
  EXPECT_FALSE(lost_.has_value()) << "nobody is told any more";
}

TEST_F(CheckReachTest, TellsThatATalkWasKilledAndItsHostTakesBack) {
  open();
  ASSERT_TRUE(run_until([&] { return checks().size() == 1 || look_often(); })) << "of this machine";
  const std::vector<pid_t> before = checks();
  open_talk(kHost);
  strike_by_talk();
  const std::vector<pid_t> after = checks();
  ASSERT_EQ(after.size(), before.size() + 1);
  for (const pid_t check : after) {
    const bool is_new = std::find(before.begin(), before.end(), check) == before.end();
    if (is_new) {
      EXPECT_EQ(::kill(check, SIGKILL), 0);
    }
  }
  EXPECT_TRUE(run_until([&] { return lost_.has_value(); }));
  EXPECT_NE(lost_.value_or("").find("137"), std::string::npos) << *lost_;
  EXPECT_TRUE(goes_on());
  EXPECT_NE(ask(*talk_, {}), "") << "there is nothing more to ask";
}

TEST_F(CheckReachTest, SaysWhyAWorkerCannotBeAsked) {
  worker_ = "/nonesuch/monarch-worker";
  open();
  open_talk(kHost);
  EXPECT_NE(ask(*talk_, {}).find("/nonesuch/monarch-worker"), std::string::npos);
  worker_ = scratch_.script("ends", "exit 3");
  open();
  open_talk(kHost);
  EXPECT_NE(ask(*talk_, {}).find("status 3"), std::string::npos);
  worker_ = scratch_.script("silent", "exec sleep 100");
  open();
  open_talk(kHost);
  EXPECT_NE(ask(*talk_, {.patience = Duration::milliseconds(20)}).find("did not answer within 80ms"),
            std::string::npos);
  worker_ = scratch_.script("noise", "echo welcome to this host\nexec sleep 100");
  open();
  open_talk(kHost);
  EXPECT_NE(ask(*talk_, {}).find("welcome"), std::string::npos);
  for (const pid_t child : children_of(::getpid())) {
    if (child != victim_->pid()) (void)::kill(child, SIGKILL);
  }
}

TEST_F(CheckReachTest, LendsItsCheckOfThisMachineToOneAtATime) {
  open();
  open_talk(std::nullopt);
  strike_by_talk();
  const auto second = reach_->open(std::nullopt, {});
  EXPECT_NE(ask(*second, {}).find("not over yet"), std::string::npos);
  talk_.reset();
  EXPECT_TRUE(goes_on());
  const std::vector<pid_t> there = checks();
  open_talk(std::nullopt);
  strike_by_talk();
  EXPECT_EQ(checks(), there) << "it is the same one";
  ASSERT_EQ(there.size(), 1U);
  ASSERT_EQ(::kill(there[0], SIGKILL), 0);
  EXPECT_TRUE(run_until([&] { return lost_.has_value(); }));
  EXPECT_TRUE(goes_on());
  talk_.reset();
  open_talk(std::nullopt);
  strike_by_talk();  // this process has no threads: it has forked another one
}

TEST_F(CheckReachTest, StrikesAndLooksForADrill) {
  open();
  injector_ = std::make_unique<drill::Injector>(loop(), *reach_, Duration::seconds(5));
  std::optional<drill::Injected> injected;
  std::optional<std::string> undone;
  const WallTime before = wall_now();
  const auto ticket = injector_->strike(
      kHost, stop(), Duration::seconds(1'000), [&](const drill::Injected& what) { injected = what; },
      [&](const drill::Undone& what) { undone = what.error; });
  ASSERT_TRUE(run_until([&] { return injected.has_value(); }, Duration::seconds(60)));
  EXPECT_EQ(injected->error, "");
  EXPECT_GE(injected->struck_at, WallTime{before.nanoseconds_since_epoch - injected->clock_error.count_nanoseconds()});
  EXPECT_LE(injected->struck_at, injected->seen_at);
  std::optional<WorkerThere> seen;
  injector_->look(kHost, {.worker = WorkerMarks{kUuid, "v1"}},
                  [&](const CheckOutcome& outcome) { seen = std::get<TimedAnswer>(outcome).answer.worker; });
  ASSERT_TRUE(run_until([&] { return seen.has_value(); }, Duration::seconds(60)));
  EXPECT_EQ(seen->processes, 1U);
  injector_->undo(ticket);
  ASSERT_TRUE(run_until([&] { return undone.has_value(); }, Duration::seconds(60)));
  EXPECT_EQ(*undone, "");
  EXPECT_NE(state(), 'T');
  EXPECT_EQ(injector_->running(), 0U);
}

TEST_F(CheckReachTest, StrikesNoMoreWhatWasUnwantedBefore) {
  open();
  injector_ = std::make_unique<drill::Injector>(loop(), *reach_, Duration::seconds(5));
  std::optional<drill::Injected> injected;
  const auto ticket = injector_->strike(
      kHost, stop(), Duration::seconds(1'000), [&](const drill::Injected& what) { injected = what; },
      [](const drill::Undone&) { ADD_FAILURE() << "there was nothing to take back"; });
  injector_->undo(ticket);
  ASSERT_TRUE(run_until([&] { return injected.has_value(); }, Duration::seconds(60)));
  EXPECT_EQ(injected->error, "it was taken back before it struck");
  EXPECT_NE(state(), 'T');
  EXPECT_EQ(injector_->running(), 0U);
}

TEST_F(CheckReachTest, LooksAtManyHosts) {
  open();
  injector_ = std::make_unique<drill::Injector>(loop(), *reach_, Duration::seconds(5));
  std::uint32_t seen = 0;
  constexpr std::uint32_t kMany = 40;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    injector_->look(HostId(i), {.worker = WorkerMarks{kUuid, "v1"}}, [&](const CheckOutcome& outcome) {
      seen += std::get<TimedAnswer>(outcome).answer.worker->processes;
    });
  }
  EXPECT_TRUE(run_until([&] { return seen == kMany; }, Duration::seconds(60))) << seen;
}

TEST_F(CheckReachTest, ReachesHostsByACommandOfTheUsers) {
  open(LaunchCommand{.hosts = {{.name = "v1", .command = {"/bin/sh"}}}, .worker = worker_});
  open_talk(kHost);
  strike_by_talk();
  talk_.reset();
  EXPECT_TRUE(goes_on());
  open(LaunchCommand{.hosts = {{.name = "v1", .command = {"/bin/sh", "-c", "echo no such pod >&2; exit 1"}}}});
  open_talk(kHost);
  EXPECT_NE(ask(*talk_, {}).find("no such pod"), std::string::npos);
}

// Its srun begins the program here, with a home of its own.
TEST_F(CheckReachTest, ReachesNodesOfSlurmByAStepBesideTheirWorkers) {
  const std::string home = text("HOME=", scratch_.path(), "\nexport HOME\n");
  const std::string say = text("echo \"$*\" >> ", scratch_.path(), "/words\n");
  (void)scratch_.script("srun", home + say + "while [ \"$1\" != /bin/sh ]; do shift; done\nexec \"$@\"");
  const RequestToken token{.uuid = kUuid, .host = HostId(2), .term = 1, .number = 1};
  (void)scratch_.script("squeue", text("echo '9|RUNNING|None|n9|", to_text(token), "'"));
  ASSERT_EQ(::setenv("PATH", text(scratch_.path(), ":/usr/bin:/bin").c_str(), 1), 0);
  open(LaunchSlurm{.allocation = Allocation{.job = 7, .nodes = {"n1", "n2"}}});
  open_talk(kHost);
  strike_by_talk();
  EXPECT_NE(words_of("words").find("--jobid=7 --overlap --nodes=1 --ntasks=1 --nodelist=n1 "
                                   "--job-name=demo-1a2b.n1.check "),
            std::string::npos)
      << words_of("words");
  talk_.reset();
  EXPECT_TRUE(goes_on());
  open_talk(HostId(2));
  strike_by_talk();
  EXPECT_NE(words_of("words").find("--jobid=9 --overlap --nodes=1 --ntasks=1 --nodelist=n9 "), std::string::npos);
  talk_.reset();
  EXPECT_TRUE(goes_on());
  open_talk(HostId(3));
  EXPECT_EQ(ask(*talk_, {}), "Slurm has no node for this host");
}

TEST_F(CheckReachTest, IsRefusedWhereTheSupervisorIsOnAHost) {
  spec_.launch = LaunchSsh{.hosts = {{.name = "v1"}}};
  spec_.supervisor_on = SupervisorPlace::kFirst;
  const auto opened = open_reach({.loop = loop(),
                                  .spec = spec_,
                                  .hosts = hosts_,
                                  .job = kJob.to_text(),
                                  .job_id = "demo-1a2b",
                                  .worker_path = worker_});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace monarch
