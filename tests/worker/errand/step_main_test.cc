// `monarch-worker step`, by the real program: it takes what is for its node, becomes a keeper, and answers in lines.

#include "worker/errand/step_main.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "transport/base/step_lines.h"
#include "transport/base/text.h"
#include "transport/messages/bootstrap.h"
#include "transport/process/pipe.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"

namespace monarch {
namespace {

constexpr char kUuid[] = "0123456789abcdef0123456789abcdef";
constexpr int kDeadlineMs = 20'000;

class StepMain : public testing::Test {
 protected:
  void SetUp() override {
    auto in = make_pipe(PipeReader::kWaits);
    auto out = make_pipe(PipeReader::kWaits);
    ASSERT_TRUE(in.ok() && out.ok());
    in_ = std::move(in->writer);
    out_ = std::move(out->reader);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in->reader.get(), STDIN_FILENO);
      ::dup2(out->writer.get(), STDOUT_FILENO);
      ::execl(std::getenv("MONARCH_WORKER"), "monarch-worker", "step", "--job", kUuid, "--host", "h2", nullptr);
      ::_exit(127);
    }
  }
  void TearDown() override {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (pid_ > 0) (void)::waitpid(pid_, nullptr, 0);
  }

  void say(const std::string& words) const {
    ASSERT_EQ(::write(in_.get(), words.data(), words.size()), static_cast<ssize_t>(words.size()));
  }
  // The next line, or what came of it before the end.
  std::string hear() const {
    std::string line;
    pollfd polled{out_.get(), POLLIN, 0};
    char byte = 0;
    while (::poll(&polled, 1, kDeadlineMs) == 1 && ::read(out_.get(), &byte, 1) == 1 && byte != '\n') line += byte;
    return line;
  }
  int end() {
    int status = 0;
    (void)::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  UniqueFd in_;
  UniqueFd out_;
  pid_t pid_ = 0;
};

TEST_F(StepMain, AnswersInLinesOfItsNodeWhatIsForItAlone) {
  EXPECT_EQ(hear(), "@h2 ready");
  Frame frame;
  frame.payload = encode_payload(Bootstrap{.host_name = "no/name"});
  say(step_lines("h1", "of another") + step_lines("h22", "of another"));
  say("a line of nobody\n" + step_lines("h2", encode_frame(frame)) + step_lines("h3", "not read by it"));
  StepBytes bytes(1U << 16U);
  auto sight = StepBytes::Sight::kMore;
  while (sight == StepBytes::Sight::kMore) {
    const std::string line = hear();
    StepLine read;
    ASSERT_TRUE(read_step_line(line, read)) << line;
    EXPECT_EQ(read.node, "h2");
    sight = bytes.add(read.rest);
  }
  ASSERT_EQ(sight, StepBytes::Sight::kWhole);
  const auto answered = decode_frame(bytes.bytes(), 1U << 16U);
  ASSERT_TRUE(answered.ok());
  const auto reply = decode_payload<BootstrapReply>(answered->payload);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->error, "`no/name` names no host");
  EXPECT_EQ(reply->keeper_pid, pid_) << "the process of the step is the keeper itself";
  EXPECT_EQ(end(), 70);
  EXPECT_EQ(hear(), "") << "and nobody holds its output";
}

TEST_F(StepMain, EndsWithItsInput) {
  EXPECT_EQ(hear(), "@h2 ready");
  say(step_lines("h1", "of another"));
  in_.reset();
  EXPECT_EQ(end(), 70);
}

TEST_F(StepMain, StartsNothingOfWhatCannotBeRead) {
  EXPECT_EQ(hear(), "@h2 ready");
  say("@h2 +00\n@h2 =xx\n");
  EXPECT_EQ(hear(), "");
  EXPECT_EQ(end(), 70);
}

}  // namespace
}  // namespace monarch
