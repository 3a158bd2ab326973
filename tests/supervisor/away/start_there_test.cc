// The process on the first host, as a child of the test's: what it says to whom it does not understand.

#include "supervisor/away/start_there.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "supervisor/launch/talk/remote_conversation.h"
#include "tests/transport/loop/loop_fixture.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/messages/launch.h"
#include "transport/messages/message.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame_stream.h"

namespace monarch {
namespace {

TEST(ReachedAddress, IsThatOfThisMachineInWhatSshdTells) {
  EXPECT_EQ(reached_address("10.0.0.9 50212 10.0.0.1 22"), "10.0.0.1");
  EXPECT_EQ(reached_address("2001:db8::9 50212 2001:db8::1 22"), "2001:db8::1");
  EXPECT_EQ(reached_address("127.0.0.1 50212 127.0.0.1 22"), "127.0.0.1");
  for (const char* nothing : {"", "10.0.0.9 50212 10.0.0.1", "a b c d", "10.0.0.9 50212 0.0.0.0 22", "1 2 3 4 5",
                              "fe80::2%eth0 50212 fe80::1%eth0 22"}) {
    EXPECT_EQ(reached_address(nothing), "") << nothing;
  }
}

class StartThereTest : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    ASSERT_EQ(::pipe2(in.data(), O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      ::close(in[1]);
      ::close(out[0]);
      ::_exit(start_there({.monarch = "/nonexistent/monarch",
                           .worker = "",
                           .ssh_connection = "10.0.0.9 50212 127.0.0.1 22",
                           .input = in[0],
                           .output = out[1]}));
    }
    ::close(in[0]);
    ::close(out[1]);
    to_ = UniqueFd(in[1]);
    from_ = UniqueFd(out[0]);
    // Its greeting, which a stream over SSH does not show.
    const std::string greeting = text(kProgramGreeting, "\n");
    std::string heard(greeting.size(), '\0');
    ASSERT_EQ(::read(from_.get(), heard.data(), heard.size()), static_cast<ssize_t>(heard.size()));
    EXPECT_EQ(heard, greeting);
  }
  void TearDown() override {
    if (child_ > 0) (void)exit_code();
  }

  StartedThere answer_to(const StartThere& wanted) {
    std::optional<StartedThere> answer;
    auto stream = FrameStream::create(loop(), std::move(from_), std::move(to_),
                                      {.on_frame =
                                           [&](const Frame& frame) {
                                             auto said = decode_payload<StartedThere>(frame.payload);
                                             if (said.ok()) answer = std::move(*said);
                                           },
                                       .on_closed = [](const Error&) {}});
    EXPECT_TRUE(stream.ok());
    Frame frame;
    frame.header.type = number_of<StartThere>();
    frame.payload = encode_payload(wanted);
    EXPECT_TRUE((*stream)->send(frame).ok());
    EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
    return answer.value_or(StartedThere{});
  }
  int exit_code() {
    int status = 0;
    to_.reset();
    ::waitpid(std::exchange(child_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  pid_t child_ = 0;
  UniqueFd to_;
  UniqueFd from_;
};

TEST_F(StartThereTest, LeavesWithWhoAskedNothing) {
  to_.reset();
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(StartThereTest, EndsAtBytesThatAreNoFrame) {
  ASSERT_EQ(::write(to_.get(), "hello there, who are you?", 25), 25);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(StartThereTest, RefusesAnotherVersion) {
  const StartedThere answer = answer_to({.version = "0.0.1\x1b", .job_id = "a-0001"});
  EXPECT_EQ(answer.exit_code, 70);
  EXPECT_NE(answer.error.find("asked by 0.0.1"), std::string::npos) << answer.error;
  EXPECT_EQ(exit_code(), 70);
}

TEST_F(StartThereTest, RefusesAnAddressThatOtherHostsCannotReach) {
  const StartedThere answer = answer_to({.version = MONARCH_VERSION, .job_id = "a-0001", .needs_address = true});
  EXPECT_EQ(answer.exit_code, 2);
  EXPECT_NE(answer.error.find("127.0.0.1"), std::string::npos) << answer.error;
  EXPECT_NE(answer.error.find("control.address"), std::string::npos) << answer.error;
}

TEST_F(StartThereTest, NamesAWorkerThatIsMissing) {
  const StartedThere answer = answer_to({.version = MONARCH_VERSION, .job_id = "a-0001"});
  EXPECT_EQ(answer.exit_code, 70);
  EXPECT_NE(answer.error.find("monarch-worker is missing"), std::string::npos) << answer.error;
}

}  // namespace
}  // namespace monarch
