// Over a real sshd, with the real worker installed on its "host".

#include "supervisor/launch/ssh/machines/second_look.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <variant>

#include "tests/supervisor/launch/ssh/ssh_server.h"
#include "tests/transport/loop/loop_fixture.h"
#include "transport/process/spawn.h"

namespace monarch {
namespace {

constexpr HostId kHost(0);
constexpr HostId kPeer(1);
// Another one in each process: workers are looked for on the whole machine.
const JobUuid kJob = [] {
  JobUuid made{.bytes = {0x12, 0x34, 0x56, 0x78}};
  const auto pid = static_cast<std::uint32_t>(::getpid());
  for (std::size_t i = 0; i < sizeof pid; ++i) made.bytes[4 + i] = static_cast<std::uint8_t>(pid >> (8 * i));
  return made;
}();

class SecondLookTest : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    const std::string lacks = SshServer::lacks();
    if (!lacks.empty()) GTEST_SKIP() << "this machine lacks " << lacks;
    worker_ = std::getenv("MONARCH_WORKER") == nullptr ? "" : std::getenv("MONARCH_WORKER");
    ASSERT_NE(worker_, "") << "MONARCH_WORKER names the executable under test";
    server_ = std::make_unique<SshServer>();
    ASSERT_EQ(server_->failure(), "");
    other_ = std::make_unique<SshServer>();
    ASSERT_EQ(other_->failure(), "");
  }
  void open(Duration patience = Duration::seconds(20), Duration again_after = Duration::seconds(100)) {
    auto made = SecondLook::create(
        loop(),
        {.job = kJob,
         .access = {.hosts = {{"gpu7", {server_->target()}}, {"gpu8", {other_->target()}}}, .installed = worker_},
         .address = {},
         .port = other_->port(),
         .patience = patience,
         .again_after = again_after,
         .seed = 1},
        [this](HostId host, SecondPath seen) {
          EXPECT_EQ(host, kHost);
          seen_.push_back(std::move(seen));
        });
    ASSERT_TRUE(made.ok());
    look_ = std::move(*made);
  }
  // The loop is not told of what is asked for here.
  bool look_often() {
    (void)loop().at(loop().now() + Duration::milliseconds(10), [] {});
    return false;
  }
  // A worker of the suspected host. It waits for the word of who started it, until that has nothing more to say.
  void run_worker() {
    int in[2];
    ASSERT_EQ(::pipe2(in, O_CLOEXEC), 0);
    const UniqueFd reads(in[0]);
    to_worker_ = UniqueFd(in[1]);
    SpawnOptions options;
    options.program = {worker_, "--job", kJob.to_text(), "--host", "gpu7"};
    options.descriptors = {{reads.get(), 0}};
    auto forked = Child::fork(options);
    ASSERT_TRUE(std::holds_alternative<std::unique_ptr<Child>>(forked));
    keeper_ = std::move(std::get<std::unique_ptr<Child>>(forked));
    keeper_->open_gate();
    ASSERT_TRUE(run_until([&] { return keeper_->exec_state() == ExecState::kExecuted || look_often(); }));
  }
  void TearDown() override {
    to_worker_.reset();
    if (keeper_) {
      EXPECT_EQ(::waitpid(keeper_->pid(), nullptr, 0), keeper_->pid());
    }
    keeper_.reset();
    LoopTest::TearDown();
  }
  bool told(std::size_t times = 1) {
    return run_until([&] { return seen_.size() >= times; }, Duration::seconds(60));
  }

  std::string worker_;
  std::unique_ptr<SshServer> server_;
  std::unique_ptr<SshServer> other_;
  std::unique_ptr<SecondLook> look_;
  UniqueFd to_worker_;
  std::unique_ptr<Child> keeper_;
  std::vector<SecondPath> seen_;
};

TEST_F(SecondLookTest, SeesThatAWorkerIsGoneAndThatItsHostReachesUs) {
  open();
  look_->look(kHost, {});
  ASSERT_TRUE(told());
  EXPECT_EQ(seen_[0].there.no_answer_because, "");
  ASSERT_TRUE(seen_[0].there.worker.has_value());
  EXPECT_EQ(seen_[0].there.worker->keepers, 0U);
  EXPECT_EQ(seen_[0].there.worker->processes, 0U);
  EXPECT_EQ(seen_[0].there.does_not_reach_us, "");
  EXPECT_NE(seen_[0].there.asked_at, "");
  EXPECT_TRUE(worker_is_gone(seen_[0]));
}

TEST_F(SecondLookTest, SeesAWorkerThatRunsThere) {
  run_worker();
  ASSERT_NE(keeper_, nullptr);
  open();
  look_->look(kHost, {});
  ASSERT_TRUE(told());
  ASSERT_TRUE(seen_[0].there.worker.has_value());
  EXPECT_EQ(seen_[0].there.worker->keepers, 1U);
  EXPECT_EQ(seen_[0].there.worker->stopped, 0U);
  EXPECT_FALSE(worker_is_gone(seen_[0]));
}

TEST_F(SecondLookTest, AsksOthersOfAHostThatDoesNotAnswer) {
  open();
  const std::uint16_t port = server_->port();
  server_ = std::make_unique<SshServer>();  // at another port
  look_->look(kHost, {{.host = kPeer, .suspect_address = "127.0.0.1"}});
  ASSERT_TRUE(told());
  EXPECT_NE(seen_[0].there.no_answer_because.find("refused"), std::string::npos) << seen_[0].there.no_answer_because;
  EXPECT_FALSE(seen_[0].there.worker.has_value());
  ASSERT_EQ(seen_[0].from.size(), 1U);
  EXPECT_EQ(seen_[0].from[0].peer, "gpu8");
  EXPECT_TRUE(seen_[0].from[0].asked);
  EXPECT_NE(seen_[0].from[0].does_not_answer, "") << port;
}

TEST_F(SecondLookTest, HearsFromAPeerThatTheHostAnswersIt) {
  run_worker();  // a look is over as soon as it is seen that none runs
  open();
  look_->look(kHost, {{.host = kPeer, .suspect_address = "127.0.0.1"}});
  ASSERT_TRUE(told());
  ASSERT_EQ(seen_[0].from.size(), 1U);
  EXPECT_TRUE(seen_[0].from[0].asked);
  EXPECT_EQ(seen_[0].from[0].does_not_answer, "");
}

TEST_F(SecondLookTest, TellsWhatHasComeWhenItsTimeIsUp) {
  open(Duration::milliseconds(1));
  look_->look(kHost, {{.host = kPeer, .suspect_address = "127.0.0.1"}});
  ASSERT_TRUE(told());
  EXPECT_NE(seen_[0].there.no_answer_because, "");
  EXPECT_FALSE(seen_[0].from[0].asked);
}

TEST_F(SecondLookTest, LooksOnceInAWhileAndTellsNothingOfWhatIsForgotten) {
  open();
  look_->look(kHost, {});
  look_->forget(kHost);
  look_->look(kHost, {});  // not again so soon
  EXPECT_FALSE(run_until([&] { return !seen_.empty(); }, Duration::seconds(2)));
  open(Duration::seconds(20), Duration::zero());
  look_->look(kHost, {});
  ASSERT_TRUE(told());
  look_->look(kHost, {});
  EXPECT_TRUE(told(2));
}

}  // namespace
}  // namespace monarch
