// The launcher over a real sshd, with a script in the place of the worker: what it copies, tells, ends and tries again.

#include "supervisor/launch/ssh/ssh_launcher.h"

#include <fcntl.h>

#include <filesystem>

#include "tests/supervisor/launch/ssh/ssh_launch_fixture.h"

namespace monarch {
namespace {

TEST_F(SshLaunch, CopiesTheWorkerAndTellsItWhereToCallBack) {
  open();
  launcher_->launch(HostId(0), bootstrap());
  expect_launched();
  EXPECT_EQ(launched_[0].reply.public_key, "the key");
  EXPECT_EQ(launched_[0].control_endpoint, "tcp://127.0.0.1:7001");
  EXPECT_NE(launched_[0].again.find("/dev/tcp/127.0.0.1/7001"), std::string::npos) << launched_[0].again;
  EXPECT_EQ(read_text(home_.path() + "/bootstrap"), frame_at("127.0.0.1"));
}

class SshLaunchWithWorkspace : public SshLaunch {
 protected:
  void SetUp() override {
    SshLaunch::SetUp();
    if (IsSkipped()) return;
    workspace_ = true;
    open();
    std::filesystem::create_directories(home_.path() + "/tree");
    for (const char* content : {"aaaa", "bbbb", "cccc"}) home_.write(text("tree/", content), content);
  }
  MadePack pack() {
    const UniqueFd folder(::open(home_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return WorkspacePack::make(folder.get(), {.path = home_.path() + "/tree"});
  }
};

TEST_F(SshLaunchWithWorkspace, SendsWhatAHostLacksBeforeItsWorkerStarts) {
  launcher_->launch(HostId(0), bootstrap());
  (void)run_until([] { return false; }, Duration::milliseconds(100));
  EXPECT_EQ(server_->log().find("Accepted"), std::string::npos) << "there is nothing to send yet";
  const MadePack made = pack();
  ASSERT_TRUE(made.ok()) << made.error().message;
  launcher_->on_workspace(made);
  expect_launched();
  EXPECT_EQ(read_text(home_.path() + "/manifest"), (*made)->manifest());
  EXPECT_EQ(read_text(home_.path() + "/blobs"), "aaaacccc");
  EXPECT_GT(launched_[0].times.copy, Duration::zero());
}

TEST_F(SshLaunchWithWorkspace, AHostThatHasNoRoomFailsAndIsClearedUp) {
  home_.write("full", "");
  launcher_->on_workspace(pack());
  launcher_->launch(HostId(0), bootstrap());
  ASSERT_TRUE(told());
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_[0].kind, LaunchFailureKind::kDiskFull);
  EXPECT_EQ(failed_[0].phase, "workspace");
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(ended());
  EXPECT_EQ(ended_[0], "nothing of it was running any more") << "its `end` was asked: some of the tree may lie there";
}

TEST_F(SshLaunchWithWorkspace, OneThatCannotBeReadIsEachLaunchsFailure) {
  launcher_->launch(HostId(0), bootstrap());
  launcher_->on_workspace(Error{ErrorCode::kInvalid, "x changes while it is read"});
  ASSERT_TRUE(told());
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_[0].phase, "workspace");
  EXPECT_EQ(failed_[0].message, "x changes while it is read");
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(ended());
  EXPECT_EQ(ended_[0], "was not running");
}

TEST_F(SshLaunchWithWorkspace, OneThatWaitsForItIsDestroyedAtOnce) {
  launcher_->launch(HostId(0), bootstrap());
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(ended());
  launcher_->on_workspace(pack());
  (void)run_until([] { return false; }, Duration::milliseconds(100));
  EXPECT_EQ(server_->log().find("Accepted"), std::string::npos);
  EXPECT_TRUE(launched_.empty() && failed_.empty());
}

TEST_F(SshLaunch, CopiesNothingToAHostThatHasIt) {
  open();
  launcher_->launch(HostId(0), bootstrap());
  expect_launched();
  launched_.clear();
  // With this content a copy would be refused: the hash is another's.
  auto other = std::make_shared<WorkerImage>(*image_);
  other->bytes = std::string(image_->bytes.size(), 'x');
  image_ = other;
  open();
  launcher_->launch(HostId(1), bootstrap());
  expect_launched();
}

TEST_F(SshLaunch, TellsAHostThatIsNotTrustedAndLeavesItAlone) {
  target_.known_hosts.clear();
  open();
  launcher_->launch(HostId(0), bootstrap());
  ASSERT_TRUE(told());
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_[0].kind, LaunchFailureKind::kHostKeyUnknown);
  EXPECT_EQ(failed_[0].phase, "host key");
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(ended());
  EXPECT_EQ(ended_[0], "was not running");
  EXPECT_EQ(server_->log().find("Accepted"), std::string::npos);
}

TEST_F(SshLaunch, TellsOfAWorkerThatDoesNotStart) {
  image_ = image_of("#!/bin/sh\necho oh no >&2\nexit 9\n");
  open();
  launcher_->launch(HostId(0), bootstrap());
  ASSERT_TRUE(told());
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_[0].kind, LaunchFailureKind::kExec);
  EXPECT_NE(failed_[0].words.find("oh no"), std::string::npos);
  EXPECT_NE(failed_[0].again.find("ssh "), std::string::npos);
  EXPECT_GT(failed_[0].elapsed, Duration::zero());
}

TEST_F(SshLaunch, WaitsForNoHostThatTalksAndDoesNotGetOn) {
  home_.write("chatter", "");
  silence_ = Duration::seconds(2);
  open();
  launcher_->launch(HostId(0), bootstrap());
  ASSERT_TRUE(run_until([&] { return !failed_.empty(); }, Duration::seconds(30)));
  EXPECT_EQ(failed_[0].kind, LaunchFailureKind::kTimeout);
  EXPECT_NE(failed_[0].message.find("did not answer"), std::string::npos) << failed_[0].message;
  EXPECT_NE(failed_[0].words.find("so much to do"), std::string::npos) << failed_[0].words;
}

TEST_F(SshLaunch, EndsAWorkerAndTellsOnce) {
  open();
  launcher_->launch(HostId(0), bootstrap());
  expect_launched();
  launcher_->destroy(HostId(0));
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(ended());
  EXPECT_EQ(ended_, std::vector<std::string>{"2 processes ended by order"});
}

TEST_F(SshLaunch, EndsAWorkerInTheMiddleOfItsLaunch) {
  home_.write("hang", "");
  open();
  launcher_->launch(HostId(0), bootstrap());
  look_often();
  ASSERT_TRUE(run_until([&] { return !read_text(home_.path() + "/running").empty(); }, Duration::seconds(30)));
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(ended());
  EXPECT_EQ(ended_, std::vector<std::string>{"2 processes ended by order"});
  EXPECT_TRUE(launched_.empty());
  EXPECT_TRUE(failed_.empty());
}

// As when somebody stops a job while it starts: a host that will never let us in has nothing of ours to end.
TEST_F(SshLaunch, KnowsThatNothingRunsWhereItWasNotLetInYet) {
  target_.known_hosts.clear();
  open();
  launcher_->launch(HostId(0), bootstrap());
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(ended());
  EXPECT_EQ(ended_, std::vector<std::string>{"was not reached"});
  EXPECT_TRUE(failed_.empty());
  EXPECT_EQ(server_->log().find("Accepted"), std::string::npos);
}

TEST_F(SshLaunch, TriesToEndAWorkerUntilItsHostAnswers) {
  open();
  launcher_->launch(HostId(0), bootstrap());
  expect_launched();
  const std::string known = read_text(target_.known_hosts[0]);
  server_->folder().write("known_hosts", "");
  launcher_->destroy(HostId(0));
  const auto turned_away = [&] { return server_->log().find("Connection closed by") != std::string::npos; };
  look_often();
  ASSERT_TRUE(run_until([&] { return turned_away() || !ended_.empty(); }, Duration::seconds(30)));
  server_->folder().write("known_hosts", known);
  ASSERT_TRUE(ended());
  EXPECT_EQ(ended_, std::vector<std::string>{"2 processes ended by order"});
}

TEST_F(SshLaunch, EndsWhatAnEarlierSupervisorLaunched) {
  open();
  launcher_->launch(HostId(0), bootstrap());
  expect_launched();
  open();
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(ended());
  EXPECT_EQ(ended_[0], "2 processes ended by order");
}

TEST_F(SshLaunch, TakesAGoodbyeForTheEndAndHearsItOnce) {
  open();
  launcher_->launch(HostId(0), bootstrap());
  expect_launched();
  launcher_->on_goodbye(HostId(0), true);
  launcher_->on_goodbye(HostId(0), true);
  EXPECT_EQ(ended_, std::vector<std::string>{"it left"});
}

TEST(SshEndpoints, GetAnotherAddress) {
  EXPECT_EQ(endpoint_at("tcp://0.0.0.0:7", "10.0.0.1"), "tcp://10.0.0.1:7");
  EXPECT_EQ(endpoint_at("tcp://[::]:7", "fe80::1"), "tcp://[fe80::1]:7");
}

TEST(RemoteTalk, TakesAFileThatCouldNotBeExecutedForNoWorker) {
  EXPECT_FALSE(may_have_run(LaunchFailure{.kind = LaunchFailureKind::kNotExecutable}));
  EXPECT_TRUE(may_have_run(LaunchFailure{.kind = LaunchFailureKind::kTimeout}));
  EXPECT_TRUE(may_have_run(BootstrapReply{}));
}

TEST_F(SshLaunch, LooksAtAHostThatIsNamedBeforeItsNextLaunchAndAtNoOther) {
  std::vector<HostId> looked_at;
  std::optional<LaunchFailure> unwell = LaunchFailure{.kind = LaunchFailureKind::kUnwell, .message = "no disk"};
  check_ = [&](SshSession&, HostId host, int) {
    looked_at.push_back(host);  // the loop waits for the session's end before it looks
    return unwell;
  };
  open();
  launcher_->check_first(HostId(0));
  launcher_->launch(HostId(0), bootstrap());
  ASSERT_TRUE(told());
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_[0].message, "no disk");
  EXPECT_EQ(looked_at, std::vector<HostId>{HostId(0)});
  launcher_->launch(HostId(0), bootstrap());
  ASSERT_TRUE(run_until([&] { return !launched_.empty(); }, Duration::seconds(30)));
  EXPECT_EQ(looked_at.size(), 1U) << "once";
}

}  // namespace
}  // namespace monarch
