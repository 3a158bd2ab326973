// Commands over a real sshd: bytes both ways, ends, deadlines; and the same through jump hosts.

#include "supervisor/launch/ssh/session/ssh_channel.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <memory>

#include "supervisor/launch/ssh/session/ssh_session.h"
#include "tests/supervisor/launch/ssh/ssh_server.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

class SshChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string lacks = SshServer::lacks();
    if (!lacks.empty()) GTEST_SKIP() << "this machine lacks " << lacks;
    server_ = std::make_unique<SshServer>();
    ASSERT_EQ(server_->failure(), "");
    open({server_->target()});
  }

  void open(const SshRoute& route) {
    session_.reset();
    auto opened = SshSession::open(route, -1);
    if (const auto* failure = std::get_if<SshFailure>(&opened)) FAIL() << failure->failure.message;
    session_ = std::move(std::get<std::unique_ptr<SshSession>>(opened));
  }

  static Patience soon() { return {Duration::seconds(20), -1}; }

  // All that the command wrote, and its exit status, with all of `input` on its standard input.
  SshOutput talk(const std::string& command, std::string_view input, std::optional<int>* status = nullptr) {
    SshOutput all;
    auto channel = session_->exec(command, soon());
    EXPECT_TRUE(channel.ok());
    if (!channel.ok()) return all;
    bool told = false;
    while (!all.ended) {
      const auto written = (*channel)->write_some(input);
      auto some = (*channel)->read_some();
      if (!written.ok() || !some.ok()) {
        ADD_FAILURE() << (written.ok() ? some.error() : written.error()).message;
        return all;
      }
      input.remove_prefix(*written);
      if (input.empty() && !told) {
        told = true;
        EXPECT_TRUE((*channel)->send_eof().ok());
      }
      all.out += some->out;
      all.err += some->err;
      all.ended = some->ended;
      const bool moved = *written > 0 || !some->out.empty() || !some->err.empty();
      if (!all.ended && !moved && !(*channel)->wait(soon()).ok()) {
        ADD_FAILURE() << "it hangs";
        return all;
      }
    }
    const auto ended = (*channel)->exit_status(soon());
    EXPECT_TRUE(ended.ok());
    if (ended.ok() && status != nullptr) *status = *ended;
    return all;
  }

  std::unique_ptr<SshServer> server_;
  std::unique_ptr<SshSession> session_;
};

TEST_F(SshChannelTest, CarriesInputOutputErrorsAndTheExitStatus) {
  std::optional<int> status;
  const SshOutput output = talk("cat; echo gone wrong >&2; exit 7", "hello", &status);
  EXPECT_EQ(output.out, "hello");
  EXPECT_TRUE(output.err.ends_with("gone wrong\n"))
      << output.err;  // what begins a shell here may have had words before
  EXPECT_EQ(status, 7);
}

TEST_F(SshChannelTest, RunsOneCommandAfterAnotherInASession) {
  EXPECT_EQ(talk("echo one", "").out, "one\n");
  EXPECT_EQ(talk("echo two", "").out, "two\n");
}

TEST_F(SshChannelTest, HasNoExitStatusOfACommandThatASignalEnded) {
  std::optional<int> status = 1;
  (void)talk("kill -9 $$", "", &status);
  EXPECT_EQ(status, std::nullopt);
}

TEST_F(SshChannelTest, CarriesMegabytesBothWaysAtOnce) {
  std::string bytes;
  for (std::uint32_t i = 0; bytes.size() < (5U << 20U); ++i) bytes += text(i, ' ');
  EXPECT_TRUE(talk("cat", bytes).out == bytes);
}

TEST_F(SshChannelTest, EndsAWaitByItsDeadlineAndByCancellation) {
  auto channel = session_->exec("cat", soon());
  ASSERT_TRUE(channel.ok());
  Status waited;
  do {
    ASSERT_TRUE((*channel)->read_some().ok());
    waited = (*channel)->wait({Duration::milliseconds(200), -1});
  } while (waited.ok());
  EXPECT_EQ(waited.error().code, ErrorCode::kTimeout);
  const UniqueFd cancel(::eventfd(1, EFD_CLOEXEC));
  waited = (*channel)->wait({Duration::seconds(60), cancel.get()});
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code, ErrorCode::kBusy);
}

TEST_F(SshChannelTest, DoesNotHangOnACommandThatReadsNothing) {
  auto channel = session_->exec("sleep 8", soon());
  ASSERT_TRUE(channel.ok());
  const std::string piece(1U << 20U, 'x');
  const Patience patience(Duration::seconds(3), -1);
  Status waited;
  std::size_t written = 0;
  while (waited.ok() && written < (64U << 20U)) {
    const auto some = (*channel)->write_some(piece);
    ASSERT_TRUE(some.ok());
    ASSERT_TRUE((*channel)->read_some().ok());
    written += *some;
    if (*some == 0) waited = (*channel)->wait(patience);
  }
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code, ErrorCode::kTimeout);
}

TEST_F(SshChannelTest, SaysThatTheConnectionIsGone) {
  auto channel = session_->exec("kill -9 $PPID; cat", soon());
  ASSERT_TRUE(channel.ok());
  for (;;) {
    const auto some = (*channel)->read_some();
    if (!some.ok()) {
      EXPECT_EQ(some.error().code, ErrorCode::kGone);
      break;
    }
    ASSERT_FALSE(some->ended);
    ASSERT_TRUE((*channel)->wait(soon()).ok());
  }
}

class SshJump : public SshChannelTest {
 protected:
  void SetUp() override {
    SshChannelTest::SetUp();
    if (IsSkipped()) return;
    second_ = std::make_unique<SshServer>();
    third_ = std::make_unique<SshServer>();
    ASSERT_EQ(second_->failure(), "");
    ASSERT_EQ(third_->failure(), "");
  }
  std::unique_ptr<SshServer> second_;
  std::unique_ptr<SshServer> third_;
};

TEST_F(SshJump, ReachesAHostThroughTwoOthers) {
  open({server_->target(), second_->target(), third_->target()});
  std::string bytes;
  for (std::uint32_t i = 0; bytes.size() < (3U << 20U); ++i) bytes += text(i, ' ');
  EXPECT_TRUE(talk("cat", bytes).out == bytes);
  EXPECT_NE(third_->log().find("Accepted publickey"), std::string::npos);
  EXPECT_EQ(session_->local_address().error().code, ErrorCode::kUnsupported);
}

TEST_F(SshJump, ChecksTheKeyOfEveryHost) {
  SshTarget stranger = second_->target();
  stranger.known_hosts.clear();
  auto opened = SshSession::open({server_->target(), stranger}, -1);
  ASSERT_TRUE(std::holds_alternative<SshFailure>(opened));
  EXPECT_EQ(std::get<SshFailure>(opened).failure.kind, LaunchFailureKind::kHostKeyUnknown);
  stranger = server_->target();
  stranger.known_hosts.clear();
  opened = SshSession::open({stranger, second_->target()}, -1);
  ASSERT_TRUE(std::holds_alternative<SshFailure>(opened));
  EXPECT_EQ(std::get<SshFailure>(opened).failure.kind, LaunchFailureKind::kHostKeyUnknown);
  EXPECT_EQ(second_->log().find("Accepted"), std::string::npos);
}

TEST_F(SshJump, NamesTheJumpHostFromWhichTheNextCannotBeReached) {
  SshTarget nobody = second_->target();
  nobody.name = "gpu9";
  nobody.port = 1;
  auto opened = SshSession::open({server_->target(), nobody}, -1);
  ASSERT_TRUE(std::holds_alternative<SshFailure>(opened));
  const LaunchFailure& failure = std::get<SshFailure>(opened).failure;
  EXPECT_EQ(failure.kind, LaunchFailureKind::kUnreachable);
  EXPECT_NE(failure.message.find(text("from gpu7 (127.0.0.1:", server_->port(), ") to gpu9 (127.0.0.1:1)")),
            std::string::npos)
      << failure.message;
  EXPECT_NE(failure.again.find("-J "), std::string::npos);
}

TEST_F(SshJump, TellsAJumpHostThatForbidsItFromAHostThatDoesNotListen) {
  const SshServer closed("ed25519", "AllowTcpForwarding no\n");
  ASSERT_EQ(closed.failure(), "");
  const auto message = [&](const SshTarget& jump) {
    SshTarget nobody = second_->target();
    nobody.port = 1;
    auto opened = SshSession::open({jump, nobody}, -1);
    return std::holds_alternative<SshFailure>(opened) ? std::get<SshFailure>(opened).failure.message : "opened";
  };
  EXPECT_NE(message(closed.target()).find("forbids"), std::string::npos) << message(closed.target());
  EXPECT_EQ(message(server_->target()).find("forbids"), std::string::npos) << message(server_->target());
}

}  // namespace
}  // namespace monarch
