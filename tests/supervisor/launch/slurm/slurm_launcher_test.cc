// The launcher with a guard that the test plays, and scripts in the place of Slurm's commands. The real ones are in tests/cluster.

#include "supervisor/launch/slurm/slurm_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/supervisor/client/scratch.h"
#include "tests/supervisor/launch/slurm/played_guard.h"
#include "tests/transport/loop/loop_fixture.h"
#include "transport/base/sha256.h"
#include "transport/base/text.h"
#include "transport/wire/frame.h"

namespace monarch {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// As srun does: the words behind its options are executed, and the node is told from where.
constexpr char kSrun[] = R"(
for word; do case "$word" in --job-name=*) name=${word#*=};; esac; done
echo "$name" >>"$HOME/sruns"
while [ "${1#-}" != "$1" ]; do shift; done
SLURM_LAUNCH_NODE_IPADDR=10.9.8.7; export SLURM_LAUNCH_NODE_IPADDR
exec "$@")";
// In the place of monarch-worker: as a worker it answers, and stays as long as the file is there.
constexpr char kWorker[] = R"(#!/bin/sh
case "$1" in
end) rm -f "$HOME/stays"; echo "ended 0";;
*) head -c 40 >/dev/null; touch "$HOME/stays"; cat "$HOME/reply"; exec 0</dev/null 1>/dev/null
   while [ -e "$HOME/stays" ]; do sleep 0.01; done;;
esac)";

class SlurmLaunch : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    auto [ours, theirs] = guard_sockets();
    played_ = std::make_unique<PlayedGuard>(loop(), std::move(theirs));
    auto guard = Guard::create(loop(), std::move(ours), JobUuid{},
                               {.on_hello = [](const KeeperHello&) {},
                                .on_changed = [this](const RankReport& report) { launcher_->on_changed(report); },
                                .on_lost = [this](const Error&) { launcher_->on_guard_lost(); }});
    ASSERT_TRUE(guard.ok());
    guard_ = std::move(*guard);
    (void)scratch_.script("bin/srun", kSrun);
    (void)scratch_.script("bin/squeue", R"(case "$*" in *--steps*) cat "$HOME/steps";; *) cat "$HOME/state";; esac)");
    (void)scratch_.script("bin/scancel", R"(echo "$@" >>"$HOME/cancelled"; : >"$HOME/steps"; rm -f "$HOME/stays")");
    (void)scratch_.script("bin/scontrol", R"(echo >>"$HOME/shown"; cat "$HOME/job")");
    say("job", "JobId=7 JobName=x\n   Nodes=h[1-2] CPU_IDs=0 Mem=0 GRES=\n");
    (void)scratch_.script("bin/sinfo", R"(cat "$HOME/node")");
    say("steps", "");
    say("state", "7|RUNNING|None\n");
    say("node", "idle\n");
    BootstrapReply reply;
    reply.version = MONARCH_VERSION;
    reply.boot_id = "boot";
    (void)scratch_.write("reply", encode_frame({FrameHeader{}, encode_payload(reply)}));
    begin(kWorker);
  }

  void begin(const std::string& program) {
    WorkerImage image{
        .file = {.sha256 = sha256(program), .size = program.size()}, .bytes = program, .machine = machine()};
    SlurmLauncherOptions options{
        .job = JobUuid{},
        .job_id = "demo-1a2b",
        .term = Term(1),
        .slurm_job = 7,
        .nodes = {"h1", "h2"},
        .environment = {text("HOME=", scratch_.path()), text("PATH=", scratch_.path(), "/bin:/usr/bin:/bin")},
        .address = {},
        .image = std::make_shared<const WorkerImage>(std::move(image)),
        .log_directory = scratch_.path(),
        .on_over = [this](const std::string& state) { over_ = state; }};
    launcher_ = std::make_unique<SlurmLauncher>(
        loop(), *guard_, std::move(options),
        LauncherHandlers{.on_launched = [this](HostId, LaunchedWorker worker) { launched_ = std::move(worker); },
                         .on_failed = [this](HostId, LaunchFailure failure) { failed_ = std::move(failure); },
                         .on_ended = [this](HostId, const std::string& how, bool) { ended_ = how; }});
  }

  void launch() {
    Bootstrap bootstrap;
    bootstrap.host_name = "h1";
    bootstrap.control_endpoint = "tcp://127.0.0.1:7000";
    bootstrap.bulk_endpoint = "tcp://127.0.0.1:7001";
    launcher_->launch(HostId(0), bootstrap);
  }

  void launch_well() {
    launch();
    ASSERT_TRUE(run_until([&] { return launched_ || failed_; }));
    ASSERT_TRUE(launched_.has_value()) << what_failed(*failed_) << read("srun.h1.log");
    say("steps", "7.0|demo-1a2b.h1\n7.1|demo-1a2b.h2\n");
  }

  std::string read(const std::string& name) const {
    std::ifstream file(text(scratch_.path(), "/", name));
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }

  // What a command answers from now on.
  void say(const std::string& name, const std::string& answer) const {
    std::filesystem::rename(scratch_.write(name + ".new", answer), text(scratch_.path(), "/", name));
  }

  // The words of each srun.
  std::vector<std::vector<std::string>> sruns() const {
    std::vector<std::vector<std::string>> found;
    for (const auto& words : played_->started()) {
      if (std::find(words.begin(), words.end(), "srun") != words.end()) found.push_back(words);
    }
    return found;
  }

  std::size_t asked_for_steps() const {
    return static_cast<std::size_t>(std::count_if(
        played_->started().begin(), played_->started().end(),
        [](const auto& words) { return std::find(words.begin(), words.end(), "--steps") != words.end(); }));
  }

  static std::string machine() {
#if defined(__x86_64__)
    return "x86_64";
#else
    return "aarch64";
#endif
  }

  Scratch scratch_;
  std::unique_ptr<PlayedGuard> played_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<SlurmLauncher> launcher_;
  std::optional<LaunchedWorker> launched_;
  std::optional<LaunchFailure> failed_;
  std::optional<std::string> ended_;
  std::optional<std::string> over_;
};

TEST_F(SlurmLaunch, ShipsAWorkerAndTellsItTheAddressThatTheNodeSees) {
  launch_well();
  EXPECT_EQ(launched_->control_endpoint, "tcp://10.9.8.7:7000");
  EXPECT_EQ(launched_->bulk_endpoint, "tcp://10.9.8.7:7001");
  EXPECT_EQ(launched_->reply.boot_id, "boot");
  EXPECT_EQ(read("sruns"), "demo-1a2b.h1\n");
}

TEST_F(SlurmLaunch, HasTheSrunOfAWorkerThatAnsweredOutliveItsGuard) {
  launch();
  ASSERT_TRUE(run_until([&] { return !played_->started().empty(); }));
  EXPECT_EQ(played_->spared(), 0U) << "before the worker has answered";
  ASSERT_TRUE(run_until([&] { return launched_ || failed_; }));
  ASSERT_TRUE(launched_.has_value()) << what_failed(*failed_);
  EXPECT_TRUE(run_until([&] { return played_->spared() == 1; }));
  say("steps", "7.0|demo-1a2b.h1\n");
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_EQ(played_->spared(), 1U) << "the step that ends a worker is nobody's to come back to";
}

TEST_F(SlurmLaunch, AsksForTheGpusThatTheJobHasOnTheNodeAndForNoneToEndAWorker) {
  say("job",
      "JobId=7\n   Nodes=h1 CPU_IDs=0 Mem=0 GRES=gpu:2(IDX:0-1)\n   Nodes=h2 CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:0)\n");
  launch_well();
  EXPECT_THAT(sruns(), ElementsAre(Contains("--gpus=2")));
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_THAT(sruns(), ElementsAre(_, AllOf(Contains("--gres=none"), Not(Contains("--gpus=2")))));
}

TEST_F(SlurmLaunch, AsksOnceWhatTheJobHas) {
  launch_well();
  launched_.reset();
  launch();
  ASSERT_TRUE(run_until([&] { return launched_.has_value(); }));
  EXPECT_EQ(read("shown"), "\n");
}

TEST_F(SlurmLaunch, AsksForNoGpusWhereNobodySaysWhichThereAre) {
  for (const char* line : {"exit 1", "echo gibberish"}) {
    (void)scratch_.script("bin/scontrol", line);
    begin(kWorker);
    launch_well();
    EXPECT_THAT(sruns(), ElementsAre(Not(Contains(HasSubstr("--g")))));
    launched_.reset();
    launcher_.reset();
    played_->forget_started();
  }
}

TEST_F(SlurmLaunch, SaysWhatSrunSaid) {
  (void)scratch_.script("bin/srun",
                        "echo 'srun: error: Unable to create step for job 7: Requested nodes are busy' >&2; exit 1");
  launch();
  ASSERT_TRUE(run_until([&] { return failed_.has_value(); }));
  EXPECT_EQ(failed_->message,
            "srun ended without a step on the node (exit code 1): srun: error: Unable to create step for job 7: "
            "Requested nodes are busy");
  EXPECT_THAT(failed_->again, HasSubstr("srun --jobid=7"));
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_EQ(*ended_, "was not running");
  EXPECT_EQ(read("cancelled"), "");
}

TEST_F(SlurmLaunch, TakesNoNameForAnAddress) {
  std::string srun = kSrun;
  srun.replace(srun.find("10.9.8.7"), 8, "h1.example");
  (void)scratch_.script("bin/srun", srun);
  launch();
  ASSERT_TRUE(run_until([&] { return failed_.has_value(); }));
  EXPECT_EQ(failed_->kind, LaunchFailureKind::kCallBack);
  EXPECT_THAT(failed_->message, HasSubstr("control.address"));
}

TEST_F(SlurmLaunch, SaysThatThereIsNoSrun) {
  std::filesystem::remove(scratch_.path() + "/bin/srun");
  launch();
  ASSERT_TRUE(run_until([&] { return failed_.has_value(); }));
  EXPECT_THAT(failed_->message, HasSubstr("srun"));
}

TEST_F(SlurmLaunch, EndsAStepByItsNameAndThenLooksOnTheNode) {
  launch_well();
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_EQ(*ended_, "nothing of it was running any more");
  EXPECT_EQ(read("cancelled"), "--signal=KILL 7.0\n");
  EXPECT_EQ(read("sruns"), "demo-1a2b.h1\ndemo-1a2b.h1.end\n");
}

TEST_F(SlurmLaunch, LooksForAWorkerWhoseStepHasEnded) {
  launch_well();
  say("steps", "7.1|demo-1a2b.h2\n");
  std::filesystem::remove(scratch_.path() + "/stays");
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_EQ(read("cancelled"), "");
}

TEST_F(SlurmLaunch, LetsAWorkerLiveWhoseSrunAloneHasEnded) {
  launch_well();
  std::filesystem::remove(scratch_.path() + "/stays");  // the step's list still has it
  ASSERT_TRUE(run_until([&] { return asked_for_steps() >= 2; }));
  EXPECT_FALSE(ended_.has_value());
  EXPECT_EQ(read("sruns"), "demo-1a2b.h1\n");
  say("steps", "");
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); })) << "Slurm did not know yet";
}

TEST_F(SlurmLaunch, TellsHowTheJobEndedOnceThatIsKnown) {
  launch_well();
  say("state", "7|COMPLETING|None\n");
  std::filesystem::remove(scratch_.path() + "/stays");
  ASSERT_TRUE(run_until([&] { return asked_for_steps() >= 1; }));
  EXPECT_FALSE(over_.has_value());
  say("state", "7|PREEMPTED|None\n");
  ASSERT_TRUE(run_until([&] { return over_.has_value(); }));
  EXPECT_EQ(*over_, "PREEMPTED");
}

TEST_F(SlurmLaunch, IsWithoutNodesWhenItsJobWaitsAgain) {
  launch_well();
  say("state", "7|PENDING|None\n");
  std::filesystem::remove(scratch_.path() + "/stays");
  ASSERT_TRUE(run_until([&] { return over_.has_value(); }));
  EXPECT_EQ(*over_, "PENDING");
}

TEST_F(SlurmLaunch, AsksAgainUntilTheNodeHasAnswered) {
  launch_well();
  (void)scratch_.script("bin/srun", "echo 'srun: error: Unable to contact slurm controller' >&2; exit 1");
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(run_until([&] { return asked_for_steps() >= 2; }));
  EXPECT_FALSE(ended_.has_value());
  (void)scratch_.script("bin/srun", kSrun);
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
}

TEST_F(SlurmLaunch, TakesTheEndOfTheWholeJobForAnEndWhereTheNodeAnswers) {
  launch_well();
  (void)scratch_.script(
      "bin/srun", "echo 'srun: error: Unable to confirm allocation for job 7: Invalid job id specified' >&2; exit 1");
  say("state", "7|CANCELLED|None\n");
  say("node", "down*\n");
  launcher_->destroy(HostId(0));
  EXPECT_FALSE(run_until([&] { return ended_.has_value(); }, Duration::milliseconds(700)));
  EXPECT_EQ(over_, "CANCELLED");
  say("node", "idle\n");
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_EQ(*ended_, "Slurm has ended the job that it ran in");
}

TEST_F(SlurmLaunch, DestroysWhatIsOnItsWay) {
  (void)scratch_.script("bin/srun", "exec sleep 1000");
  launch();
  ASSERT_TRUE(run_until([&] { return played_->running() == 1; }));
  (void)scratch_.script("bin/srun", kSrun);
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_FALSE(launched_ || failed_);
  EXPECT_TRUE(run_until([&] { return played_->running() == 0; }));
}

TEST_F(SlurmLaunch, TellsAGoodbyeOnce) {
  launch_well();
  launcher_->on_goodbye(HostId(0), true);
  EXPECT_EQ(ended_, "it left");
  ended_.reset();
  launcher_->on_goodbye(HostId(0), true);
  say("steps", "");
  std::filesystem::remove(scratch_.path() + "/stays");
  EXPECT_FALSE(run_until([&] { return ended_.has_value(); }, Duration::milliseconds(100)));
}

TEST_F(SlurmLaunch, FailsALaunchWhenItsGuardHasGone) {
  played_->leave();
  launch();
  ASSERT_TRUE(run_until([&] { return failed_.has_value(); }));
  EXPECT_THAT(failed_->message, HasSubstr("guard"));
}

}  // namespace
}  // namespace monarch
