// Steps that serve many hosts, by a launcher whose guard the test plays. The real ones are in tests/cluster.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "supervisor/launch/slurm/slurm_launcher.h"
#include "tests/supervisor/launch/slurm/slurm_launch_fixture.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SharedLaunch : public SlurmLaunch {};

TEST_F(SharedLaunch, ServesManyByOneStepAndTellsThemApart) {
  launch_all();
  ASSERT_TRUE(run_until([&] { return launched_hosts_.size() == 3 || failed_; })) << read("srun.+.log");
  ASSERT_FALSE(failed_.has_value()) << what_failed(*failed_);
  EXPECT_EQ(launched_->control_endpoint, "tcp://10.9.8.7:7000");
  EXPECT_EQ(read("sruns"), "demo-1a2b.+1.1\n");
  EXPECT_TRUE(run_until([&] { return played_->spared() == 1; }));
  say("steps", "7.0|demo-1a2b.+1.1\n");
  launcher_->destroy(HostId(1));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_EQ(read("cancelled"), "") << "the step is the others' as well";
  EXPECT_EQ(read("sruns"), "demo-1a2b.+1.1\ndemo-1a2b.h2.end\n");
}

TEST_F(SharedLaunch, LooksForAllWorkersOfAStepThatHasEndedByOneQuestion) {
  launch_all();
  ASSERT_TRUE(run_until([&] { return launched_hosts_.size() == 3; })) << read("srun.+.log");
  played_->forget_started();
  std::filesystem::remove(scratch_.path() + "/stays");
  ASSERT_TRUE(run_until([&] { return asked_for_steps() >= 1; }));
  ASSERT_TRUE(run_until([&] { return ended_hosts_.size() == 3; }));
  EXPECT_EQ(asked_for_steps(), 2U) << "whether the step has ended, and which there are to end";
}

TEST_F(SharedLaunch, TriesWithoutANodeOnWhichTheStepDoesNotBegin) {
  silence_ = Duration::milliseconds(1'500);
  (void)scratch_.write("dead.h2", "");
  launch_all();
  ASSERT_TRUE(run_until([&] { return launched_hosts_.size() == 2; })) << read("srun.+.log");
  EXPECT_EQ(launched_hosts_, (std::set<std::uint32_t>{0, 2}));
  ASSERT_TRUE(run_until([&] { return failed_.has_value(); }));
  EXPECT_EQ(failed_hosts_, std::set<std::uint32_t>{1});
  EXPECT_THAT(failed_->message, HasSubstr("srun has started no step on the node within"));
  std::string sruns = read("sruns");
  EXPECT_THAT(sruns, AllOf(HasSubstr("demo-1a2b.+1.1\n"), HasSubstr("demo-1a2b.+1.2\n"), HasSubstr("demo-1a2b.h2\n")));
}

TEST_F(SharedLaunch, GivesAStepOfItsOwnToAHostOnWhichTheWorkerDoesNotBegin) {
  silence_ = Duration::milliseconds(1'500);
  (void)scratch_.write("mute.h3", "");
  launch_all();
  ASSERT_TRUE(run_until([&] { return launched_hosts_.size() == 2; })) << read("srun.+.log");
  EXPECT_FALSE(failed_.has_value());
  ASSERT_TRUE(run_until([&] { return launched_hosts_.size() == 3 || failed_; }));
  EXPECT_FALSE(failed_.has_value()) << what_failed(*failed_);
  EXPECT_EQ(read("sruns"), "demo-1a2b.+1.1\ndemo-1a2b.h3\n");
}

TEST_F(SharedLaunch, GivesEachAStepOfItsOwnWhereSlurmRefusesOneForAll) {
  std::string srun = kSharedSrun;
  srun.insert(srun.find("while"), "case $name in *+*) echo 'srun: error: Unable to create step' >&2; exit 1;; esac\n");
  launch_all();
  (void)scratch_.script("bin/srun", srun);
  ASSERT_TRUE(run_until([&] { return launched_hosts_.size() == 3 || failed_; }));
  EXPECT_FALSE(failed_.has_value()) << what_failed(*failed_);
  std::string sruns = read("sruns");
  EXPECT_EQ(std::count(sruns.begin(), sruns.end(), '\n'), 4) << sruns;
}

TEST_F(SharedLaunch, DestroysOneOfManyThatIsOnItsWay) {
  (void)scratch_.write("dead.h2", "");
  launch_all();
  ASSERT_TRUE(run_until([&] { return played_->running() == 1; }));
  launcher_->destroy(HostId(1));
  ASSERT_TRUE(run_until([&] { return ended_hosts_.contains(1) && launched_hosts_.size() == 2; }));
  EXPECT_FALSE(failed_.has_value());
}

}  // namespace
}  // namespace monarch
