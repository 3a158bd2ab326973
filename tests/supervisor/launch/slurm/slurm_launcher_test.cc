// The launcher with a guard that the test plays, and scripts in the place of Slurm's commands. The real ones are in
// tests/cluster.

#include "supervisor/launch/slurm/slurm_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/supervisor/launch/slurm/slurm_launch_fixture.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST_F(SlurmLaunch, SaysWhatSrunSaidLast) {
  (void)scratch_.script(
      "bin/srun",
      "i=0; while [ $i -lt 200 ]; do echo \"srun: error: line $i of many that came before it\" >&2; i=$((i+1)); done; "
      "echo 'srun: error: Unable to create step for job 7' >&2; exit 1");
  launch();
  ASSERT_TRUE(run_until([&] { return failed_.has_value(); }));
  EXPECT_EQ(failed_->message,
            "srun ended without a step on the node (exit code 1): srun: error: Unable to create step for job 7");
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

TEST_F(SlurmLaunch, EndsNoMoreWorkersAtATimeThanItMay) {
  ends_ = 1;
  begin(kWorker);
  constexpr const char* kAlone = R"(
[ ! -e "$HOME/under_way" ] || echo "$$" >>"$HOME/others"
touch "$HOME/under_way"; sleep 0.1; rm "$HOME/under_way"
)";
  (void)scratch_.script("bin/srun", text(kAlone, kSrun));
  for (const std::uint32_t host : {0U, 1U, 2U}) launcher_->destroy(HostId(host));
  ASSERT_TRUE(run_until([&] { return ended_hosts_.size() == 3; }));
  EXPECT_EQ(read("others"), "");
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
  ASSERT_TRUE(run_until([&] { return over_.has_value(); }));
  EXPECT_EQ(over_, "CANCELLED");
  EXPECT_FALSE(run_until([&] { return ended_.has_value(); }, Duration::milliseconds(700)));
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
