// A program over a real sshd, with a script in the place of monarch.

#include "supervisor/launch/ssh/ssh_program.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "supervisor/launch/talk/remote_conversation.h"
#include "tests/supervisor/launch/ssh/ssh_server.h"
#include "tests/transport/loop/loop_fixture.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

class SshProgramTest : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    const std::string lacks = SshServer::lacks();
    if (!lacks.empty()) GTEST_SKIP() << "this machine lacks " << lacks;
    server_ = std::make_unique<SshServer>("ed25519", text("SetEnv XDG_CACHE_HOME=", home_.path(), "/cache"));
    ASSERT_EQ(server_->failure(), "");
    route_ = {server_->target()};
  }

  // A monarch of these shell commands, after its greeting.
  void start(const std::string& body, const std::string& greeting = text("echo ", kProgramGreeting)) {
    const std::string monarch = home_.write("monarch", text("#!/bin/sh\n", greeting, "\n", body, "\n"));
    const std::string worker = home_.write("monarch-worker", "#!/bin/sh\n");
    const auto bundle = read_bundle(monarch, worker);
    ASSERT_TRUE(bundle.ok());
    auto made = SshProgram::start(
        loop(),
        {.route = route_, .bundle = *bundle, .word = "over-ssh", .ask_after = ask_after_, .dead_after = dead_after_},
        {.on_ready = [this](SshProgramReady ready) { ready_ = std::move(ready); },
         .on_ended = [this](SshProgramEnd end) { end_ = std::move(end); },
         .on_failed = [this](LaunchFailure failure) { failure_ = std::move(failure); }});
    ASSERT_TRUE(made.ok()) << made.error().message;
    program_ = std::move(*made);
  }
  void start_and_wait(const std::string& body) {
    start(body);
    ASSERT_TRUE(run_until([&] { return ready_ || failure_; }, Duration::seconds(30)));
    ASSERT_TRUE(ready_) << failure_->message << failure_->words;
  }
  bool ends() {
    return run_until([&] { return end_.has_value(); }, Duration::seconds(30));
  }
  void say(std::string_view words) {
    while (!words.empty()) {
      const ssize_t sent = ::send(ready_->stream.get(), words.data(), words.size(), MSG_NOSIGNAL);
      if (sent > 0) words.remove_prefix(static_cast<std::size_t>(sent));
      pollfd writable{ready_->stream.get(), POLLOUT, 0};
      ASSERT_EQ(::poll(&writable, 1, 10'000), 1);
    }
  }
  // Until the end of the program's output, or `most` bytes of it.
  std::string hear(std::size_t most = SIZE_MAX) {
    std::string heard;
    std::array<char, 65536> piece{};
    while (heard.size() < most) {
      pollfd readable{ready_->stream.get(), POLLIN, 0};
      if (::poll(&readable, 1, 20'000) != 1) break;
      const ssize_t got = ::recv(ready_->stream.get(), piece.data(), std::min(piece.size(), most - heard.size()), 0);
      if (got <= 0) break;
      heard.append(piece.data(), static_cast<std::size_t>(got));
    }
    return heard;
  }

  Scratch home_;
  std::unique_ptr<SshServer> server_;
  SshRoute route_;
  Duration ask_after_ = Duration::seconds(10);
  Duration dead_after_ = Duration::seconds(30);
  std::optional<SshProgramReady> ready_;
  std::optional<SshProgramEnd> end_;
  std::optional<LaunchFailure> failure_;
  std::unique_ptr<SshProgram> program_;
};

TEST_F(SshProgramTest, CarriesBothWaysAndTellsTheEnd) {
  start_and_wait("read -r line; echo \"heard $line\"; echo words >&2; exit 7");
  EXPECT_TRUE(ready_->path.ends_with("/bin/monarch")) << ready_->path;
  say("hello\n");
  EXPECT_EQ(hear(), "heard hello\n");
  ASSERT_TRUE(ends());
  EXPECT_EQ(end_->exit_status, 7);
  EXPECT_EQ(end_->why, "");
  EXPECT_TRUE(end_->words.ends_with("words\n")) << end_->words;  // a start-up file of this user may have its own
}

TEST_F(SshProgramTest, PassesTheEndOfItsInputOn) {
  start_and_wait("cat; echo done");
  say("a line\n");
  ASSERT_EQ(::shutdown(ready_->stream.get(), SHUT_WR), 0);
  EXPECT_EQ(hear(), "a line\ndone\n");
  ASSERT_TRUE(ends());
  EXPECT_EQ(end_->exit_status, 0);
}

TEST_F(SshProgramTest, LosesNothingOfMegabytesEitherWay) {
  start_and_wait("head -c 8000000 /dev/zero; head -c 5000000 | wc -c");
  EXPECT_EQ(hear(8'000'000), std::string(8'000'000, '\0'));
  say(std::string(5'000'000, 'x'));
  EXPECT_EQ(hear(), "5000000\n");
  ASSERT_TRUE(ends());
  EXPECT_EQ(end_->exit_status, 0);
}

TEST_F(SshProgramTest, MakesAProgramWaitForWhoDoesNotRead) {
  const std::string file = home_.path() + "/written";
  start_and_wait(text("head -c 50000000 /dev/zero; echo all >", file));
  EXPECT_FALSE(run_until([&] { return end_.has_value(); }, Duration::milliseconds(700)));
  EXPECT_EQ(::access(file.c_str(), F_OK), -1) << "50 MB were taken by nobody";
  EXPECT_EQ(hear().size(), 50'000'000U);
  ASSERT_TRUE(ends());
}

TEST_F(SshProgramTest, TakesASecondStartFromTheCache) {
  start_and_wait("exit 0");
  EXPECT_GT(ready_->copied, Duration::zero());
  ASSERT_TRUE(ends());
  ready_.reset();
  end_.reset();
  start_and_wait("exit 0");
  EXPECT_EQ(ready_->copied, Duration::zero());
}

TEST_F(SshProgramTest, AHostKeyThatIsNotKnownIsRefusedWithItsClass) {
  route_[0].known_hosts.clear();
  start("exit 0");
  ASSERT_TRUE(run_until([&] { return failure_.has_value(); }, Duration::seconds(30)));
  EXPECT_EQ(failure_->kind, LaunchFailureKind::kHostKeyUnknown);
  EXPECT_FALSE(ready_);
}

TEST_F(SshProgramTest, AProgramThatDoesNotGreetHasFailedWithACommandThatShowsIt) {
  start("exit 3", "echo no >&2");
  ASSERT_TRUE(run_until([&] { return failure_.has_value(); }, Duration::seconds(30)));
  EXPECT_EQ(failure_->kind, LaunchFailureKind::kExec);
  EXPECT_EQ(failure_->words, "no\n");
  EXPECT_TRUE(failure_->again.starts_with("ssh ")) << failure_->again;
}

TEST_F(SshProgramTest, TellsAConnectionThatEnded) {
  start_and_wait("read -r line; kill -9 $PPID; exec sleep 1");
  say("now\n");  // its greeting has come by then
  const bool told = ends();
  ASSERT_TRUE(told);
  EXPECT_FALSE(end_->exit_status.has_value());
  EXPECT_NE(end_->why, "");
}

TEST_F(SshProgramTest, EndsTheProgramsInputWithItself) {
  const std::string file = home_.path() + "/ended";
  start_and_wait(text("cat; echo ended >", file));
  program_.reset();
  (void)loop().at(loop().now() + Duration::milliseconds(20), [] {});
  std::function<void()> look = [&] { (void)loop().at(loop().now() + Duration::milliseconds(20), look); };
  look();
  EXPECT_TRUE(run_until([&] { return ::access(file.c_str(), F_OK) == 0; }, Duration::seconds(10)));
}

}  // namespace
}  // namespace monarch
