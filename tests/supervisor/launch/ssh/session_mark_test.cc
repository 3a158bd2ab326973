// Who holds a session on its host, and that the next session ends it, and nobody else.

#include "supervisor/launch/ssh/session_mark.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>

#include "tests/supervisor/launch/ssh/ssh_server.h"
#include "transport/base/clock.h"

namespace monarch {
namespace {

class SessionMarks : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string lacks = SshServer::lacks();
    if (!lacks.empty()) GTEST_SKIP() << "this machine lacks " << lacks;
    server_ = std::make_unique<SshServer>();
    ASSERT_EQ(server_->failure(), "");
  }
  std::unique_ptr<SshSession> session() const {
    auto opened = SshSession::open({server_->target()}, -1);
    if (auto* made = std::get_if<std::unique_ptr<SshSession>>(&opened)) return std::move(*made);
    ADD_FAILURE() << std::get<SshFailure>(opened).failure.message;
    return nullptr;
  }
  static Patience soon() { return {Duration::seconds(20), -1}; }
  static bool lives(const SessionMark& mark) { return ::kill(static_cast<pid_t>(mark.pid), 0) == 0 || errno != ESRCH; }

  std::unique_ptr<SshServer> server_;
};

TEST(SessionMark, IsReadBehindWhatTheShellPrints) {
  EXPECT_EQ(read_mark("Welcome\n\nmonarch-session 1 4711 99\n"), (SessionMark{.pid = 4711, .started = 99}));
  for (const char* none :
       {"", "monarch-session 1 4711 99\n", "\nmonarch-session 1 4711 99", "\nmonarch-session 1 4711\n",
        "\nmonarch-session 1 x 99\n", "\nmonarch-session 1 -1 99\n", "\nmonarch-session 1 0 0\n",
        "\nmonarch-session 1 4711 99 \n", "\nmonarch-session 1 99999999999999999999 9\n"}) {
    EXPECT_FALSE(read_mark(none).known()) << none;
  }
}

TEST_F(SessionMarks, NameTheProcessOfTheirSession) {
  const auto one = session();
  const auto other = session();
  ASSERT_TRUE(one && other);
  const SessionMark first = mark_session(*one, {}, soon());
  const SessionMark second = mark_session(*other, {}, soon());
  ASSERT_TRUE(first.known() && second.known());
  EXPECT_NE(first, second);
  EXPECT_EQ(mark_session(*one, {}, soon()), first) << "it is the session's, not a command's";
}

TEST_F(SessionMarks, LetTheNextSessionEndThemEvenIfTheyAreStopped) {
  for (const bool stopped : {false, true}) {
    const auto old = session();
    const auto next = session();
    ASSERT_TRUE(old && next);
    const SessionMark before = mark_session(*old, {}, soon());
    ASSERT_TRUE(before.known());
    if (stopped) {
      ASSERT_EQ(::kill(static_cast<pid_t>(before.pid), SIGSTOP), 0);
    }
    EXPECT_TRUE(mark_session(*next, before, soon()).known());
    for (int i = 0; i < 200 && lives(before); ++i) (void)mark_session(*next, {}, soon());  // its parent reaps it
    EXPECT_FALSE(lives(before)) << stopped;
  }
}

TEST_F(SessionMarks, EndNobodyElse) {
  const auto old = session();
  const auto next = session();
  ASSERT_TRUE(old && next);
  const SessionMark before = mark_session(*old, {}, soon());
  (void)mark_session(*next, {.pid = before.pid, .started = before.started + 1}, soon());
  EXPECT_TRUE(lives(before)) << "another process has its number";
  const SessionMark us{.pid = ::getpid(), .started = 1};
  (void)mark_session(*next, us, soon());
  EXPECT_EQ(mark_session(*old, {}, soon()), before);
}

}  // namespace
}  // namespace monarch
