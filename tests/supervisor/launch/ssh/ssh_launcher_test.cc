// The launcher over a real sshd, with a script in the place of the worker: what it copies, tells, ends and tries again.

#include "supervisor/launch/ssh/ssh_launcher.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "tests/supervisor/launch/ssh/remote_orders.h"
#include "tests/supervisor/launch/ssh/ssh_server.h"
#include "tests/transport/loop/loop_fixture.h"
#include "transport/base/text.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"

namespace monarch {
namespace {

// Started, it keeps the bootstrap of so many bytes, says that two processes run, and answers; `end` ends them.
constexpr char kWorker[] = R"sh(#!/bin/sh
cd "$(dirname "$0")/../../../.." || exit 1
if [ "$1" = end ]; then
  echo "ended $(cat running 2>/dev/null || echo 0)"
  rm -f running
  exit 0
fi
echo 2 >running
[ ! -e hang ] || exec sleep 10
head -c "$(cat size)" >bootstrap
exec cat reply
)sh";

class SshLaunch : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    const std::string lacks = SshServer::lacks();
    if (!lacks.empty()) GTEST_SKIP() << "this machine lacks " << lacks;
    server_ = std::make_unique<SshServer>("ed25519", text("SetEnv XDG_CACHE_HOME=", home_.path(), "/cache"));
    ASSERT_EQ(server_->failure(), "");
    target_ = server_->target();
    home_.write("reply", test_reply());
    home_.write("size", text(frame_at("127.0.0.1").size()));
    image_ = image_of(kWorker);
  }

  static Bootstrap bootstrap() {
    Bootstrap bootstrap;
    bootstrap.host_name = "gpu7";
    bootstrap.control_endpoint = "tcp://0.0.0.0:7001";
    bootstrap.bulk_endpoint = "tcp://0.0.0.0:7002";
    return bootstrap;
  }
  static std::string frame_at(const std::string& address) {
    Bootstrap there = bootstrap();
    there.control_endpoint = endpoint_at(there.control_endpoint, address);
    there.bulk_endpoint = endpoint_at(there.bulk_endpoint, address);
    FrameHeader header;
    header.term = Term(1);
    return encode_frame({header, encode_payload(there)});
  }
  std::shared_ptr<const WorkerImage> image_of(const std::string& bytes) {
    const std::string file = home_.write("image", bytes);
    const std::string hash = home_.path() + "/hash";
    EXPECT_EQ(run_command({"/bin/sh", "-c", "sha256sum <" + file + " >" + hash}), 0);
    return std::make_shared<WorkerImage>(WorkerImage{
        .file = {.sha256 = read_text(hash).substr(0, 64), .size = bytes.size()}, .bytes = bytes, .machine = "x86_64"});
  }

  void open() {
    auto made = SshLauncher::create(
        loop(),
        SshLauncherOptions{.job_id = "train-0001",
                           .term = Term(1),
                           .hosts = {{"gpu7", {target_}}, {"gpu8", {target_}}},
                           .image = image_,
                           .silence = Duration::seconds(20)},
        LauncherHandlers{
            .on_launched = [this](HostId, LaunchedWorker worker) { launched_.push_back(std::move(worker)); },
            .on_failed = [this](HostId, LaunchFailure failure) { failed_.push_back(std::move(failure)); },
            .on_ended = [this](HostId, const std::string& how, bool) { ended_.push_back(how); },
            .on_inventory = [this] { ++inventories_; }});
    ASSERT_TRUE(made.ok());
    launcher_ = std::move(*made);
  }
  // A file tells nobody that it has changed: the loop looks.
  void look_often() {
    (void)loop().at(loop().now() + Duration::milliseconds(20), [this] { look_often(); });
  }
  bool told() {
    return run_until([&] { return !launched_.empty() || !failed_.empty(); }, Duration::seconds(30));
  }
  void expect_launched() {
    ASSERT_TRUE(told());
    for (const LaunchFailure& failure : failed_)
      ADD_FAILURE() << failure.phase << ": " << failure.message << failure.words;
    ASSERT_EQ(launched_.size(), 1U);
  }
  bool ended() {
    return run_until([&] { return !ended_.empty(); }, Duration::seconds(30));
  }

  Scratch home_;
  std::unique_ptr<SshServer> server_;
  SshTarget target_;
  std::shared_ptr<const WorkerImage> image_;
  std::unique_ptr<SshLauncher> launcher_;
  std::vector<LaunchedWorker> launched_;
  std::vector<LaunchFailure> failed_;
  std::vector<std::string> ended_;
  int inventories_ = 0;
};

TEST_F(SshLaunch, CopiesTheWorkerAndTellsItWhereToCallBack) {
  open();
  launcher_->launch(HostId(0), bootstrap());
  expect_launched();
  EXPECT_EQ(launched_[0].reply.public_key, "the key");
  EXPECT_EQ(launched_[0].control_endpoint, "tcp://127.0.0.1:7001");
  EXPECT_NE(launched_[0].again.find("/dev/tcp/127.0.0.1/7001"), std::string::npos) << launched_[0].again;
  EXPECT_EQ(read_text(home_.path() + "/bootstrap"), frame_at("127.0.0.1"));
  EXPECT_EQ(inventories_, 1);
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

}  // namespace
}  // namespace monarch
