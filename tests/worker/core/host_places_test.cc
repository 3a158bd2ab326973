#include "worker/core/host_places.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

const Environment kHome = {{"HOME", "/home/alice"}};

TEST(HostPlaces, LieInTheStateDirectoryOfTheUser) {
  const auto places = host_places(kHome, "train-0001", "node01");
  ASSERT_TRUE(places.ok()) << places.error().message;
  EXPECT_EQ(places->state_directory, "/home/alice/.local/state/monarch/hosts/train-0001/node01");
  EXPECT_EQ(places->log_directory, "/home/alice/.local/state/monarch/hosts/train-0001/node01/logs");
}

TEST(HostPlaces, FollowXdgStateHomeIfThatIsAbsolute) {
  Environment environment = kHome;
  environment["XDG_STATE_HOME"] = "/scratch/alice";
  EXPECT_EQ(host_places(environment, "j", "h")->state_directory, "/scratch/alice/monarch/hosts/j/h");
  environment["XDG_STATE_HOME"] = "scratch";
  EXPECT_EQ(host_places(environment, "j", "h")->state_directory, "/home/alice/.local/state/monarch/hosts/j/h");
}

TEST(HostPlaces, AreRefusedWithoutAHomeOrForNamesThatAreNoFolders) {
  EXPECT_EQ(host_places({}, "j", "h").error().code, ErrorCode::kInvalid);
  for (const char* name : {"", "..", "a/b", ".hidden"}) {
    EXPECT_FALSE(host_places(kHome, "j", name).ok()) << name;
    EXPECT_FALSE(host_places(kHome, name, "h").ok()) << name;
  }
  EXPECT_FALSE(is_folder_name(std::string("a\0b", 3)));
}

TEST(HostPlaces, AreSettledForABootstrapThatNamesNone) {
  Bootstrap bootstrap;
  bootstrap.job_id = "j";
  bootstrap.host_name = "h";
  ASSERT_TRUE(settle_places(bootstrap, kHome, "/run/user/1/monarch/w-1-2").ok());
  EXPECT_EQ(bootstrap.state_directory, "/home/alice/.local/state/monarch/hosts/j/h");
  EXPECT_EQ(bootstrap.log_directory, bootstrap.state_directory + "/logs");
  EXPECT_EQ(bootstrap.socket_directory, "/run/user/1/monarch/w-1-2");
}

TEST(HostPlaces, LeaveAloneWhatALauncherChose) {
  Bootstrap bootstrap;
  bootstrap.state_directory = "/state";
  bootstrap.log_directory = "/logs";
  ASSERT_TRUE(settle_places(bootstrap, {}, "/sockets").ok());
  EXPECT_EQ(bootstrap.state_directory, "/state");
  EXPECT_EQ(bootstrap.log_directory, "/logs");
  EXPECT_EQ(bootstrap.socket_directory, "") << "a launcher on the same machine may want none";
}

TEST(LoginEnvironment, HasWhatALoginHasAndNothingElse) {
  const Environment login = login_environment({{"HOME", "/home/alice"},
                                               {"PATH", "/usr/bin"},
                                               {"TMPDIR", "/scratch"},
                                               {"SSH_CONNECTION", "10.0.0.1 22"},
                                               {"LD_PRELOAD", "x.so"},
                                               {"HOMEWORK", "done"}});
  EXPECT_EQ(login, (Environment{{"HOME", "/home/alice"}, {"PATH", "/usr/bin"}, {"TMPDIR", "/scratch"}}));
}

TEST(LoginEnvironment, KnowsTheGpusOfAStepOfSlurmAndNobodyElses) {
  const Environment gpus{{"HOME", "/home/a"}, {"CUDA_VISIBLE_DEVICES", "0,1"}, {"ROCR_VISIBLE_DEVICES", "0,1"}};
  EXPECT_EQ(login_environment(gpus), (Environment{{"HOME", "/home/a"}}));
  Environment step = gpus;
  step["SLURM_STEP_ID"] = "0";
  EXPECT_EQ(login_environment(step), gpus);
}

}  // namespace
}  // namespace monarch
