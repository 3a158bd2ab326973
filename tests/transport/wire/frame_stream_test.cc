#include "transport/wire/frame_stream.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <optional>
#include <vector>

#include "tests/transport/loop/loop_fixture.h"
#include "transport/base/text.h"
#include "transport/wire/messages.h"

namespace monarch {
namespace {

Frame frame_of(std::string payload) {
  Frame frame;
  frame.header.type = 7;
  frame.header.call = payload.size();
  frame.payload = std::move(payload);
  return frame;
}

struct Heard {
  std::vector<Frame> frames;
  std::optional<Error> closed;
};

class FrameStreamTest : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    (void)::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    here_ = UniqueFd(ends[0]);
    there_ = UniqueFd(ends[1]);
  }
  std::unique_ptr<FrameStream> over(UniqueFd& socket, Heard& heard, FrameStreamLimits limits = {}) {
    UniqueFd copy(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 3));
    auto made = FrameStream::create(loop(), std::move(socket), std::move(copy),
                                    {.on_frame = [&heard](Frame frame) { heard.frames.push_back(std::move(frame)); },
                                     .on_closed = [&heard](Error why) { heard.closed = std::move(why); }},
                                    limits);
    EXPECT_TRUE(made.ok());
    return std::move(*made);
  }

  UniqueFd here_;
  UniqueFd there_;
  Heard heard_here_;
  Heard heard_there_;
};

TEST_F(FrameStreamTest, CarriesFramesBothWaysWhole) {
  auto here = over(here_, heard_here_);
  auto there = over(there_, heard_there_);
  const std::vector<Frame> said = {frame_of(""), frame_of("a"), frame_of(std::string(3'000'000, 'x'))};
  for (const Frame& frame : said) ASSERT_TRUE(here->send(frame).ok());
  ASSERT_TRUE(there->send(frame_of("back")).ok());
  ASSERT_TRUE(run_until([&] { return heard_there_.frames.size() == 3 && heard_here_.frames.size() == 1; }));
  EXPECT_EQ(heard_there_.frames, said);
  EXPECT_EQ(heard_here_.frames[0], frame_of("back"));
  EXPECT_EQ(here->pending_bytes(), 0U);
}

TEST_F(FrameStreamTest, UnderstandsBytesOneByOne) {
  auto there = over(there_, heard_there_);
  const std::string bytes = stream_bytes(frame_of("one")) + stream_bytes(frame_of("two"));
  for (const char byte : bytes) {
    ASSERT_EQ(::send(here_.get(), &byte, 1, 0), 1);
    (void)run_until([] { return true; });
    loop().run_once();
  }
  ASSERT_TRUE(run_until([&] { return heard_there_.frames.size() == 2; }));
  EXPECT_EQ(heard_there_.frames[1], frame_of("two"));
}

TEST_F(FrameStreamTest, DeliversWhatCameBeforeTheEnd) {
  auto here = over(here_, heard_here_);
  auto there = over(there_, heard_there_);
  ASSERT_TRUE(here->send(frame_of("last")).ok());
  here.reset();
  ASSERT_TRUE(run_until([&] { return heard_there_.closed.has_value(); }));
  EXPECT_EQ(heard_there_.closed->code, ErrorCode::kGone);
  EXPECT_EQ(heard_there_.frames.size(), 1U);
  EXPECT_EQ(there->send(frame_of("late")).error().code, ErrorCode::kGone);
}

TEST_F(FrameStreamTest, EndsAtWhatIsNoFrame) {
  const std::string huge("\xff\xff\xff\xff", 4);
  const std::string tiny("\x01\0\0\0x", 5);
  std::string foreign = stream_bytes(frame_of("x"));
  foreign[4] ^= 1;
  for (const std::string& bytes : {huge, tiny, foreign}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    UniqueFd from(ends[0]);
    UniqueFd to(ends[1]);
    Heard heard;
    auto stream = over(to, heard);
    ASSERT_EQ(::send(from.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    ASSERT_TRUE(run_until([&] { return heard.closed.has_value(); }));
    EXPECT_EQ(heard.closed->code, ErrorCode::kInvalid);
    EXPECT_TRUE(heard.frames.empty());
  }
}

TEST_F(FrameStreamTest, TellsAFrameThatWasCut) {
  auto there = over(there_, heard_there_);
  const std::string bytes = stream_bytes(frame_of("whole")).substr(0, 20);
  ASSERT_EQ(::send(here_.get(), bytes.data(), bytes.size(), 0), 20);
  here_.reset();
  ASSERT_TRUE(run_until([&] { return heard_there_.closed.has_value(); }));
  EXPECT_EQ(heard_there_.closed->message, "the connection ended within a frame");
}

TEST_F(FrameStreamTest, HoldsNoMoreThanItsLimitForWhoDoesNotRead) {
  auto here = over(here_, heard_here_, {.queue_bytes = 1'000'000, .payload_bytes = 400'000});
  EXPECT_EQ(here->send(frame_of(std::string(400'001, 'x'))).error().code, ErrorCode::kInvalid);
  Status sent;
  for (int i = 0; i < 20 && sent.ok(); ++i) sent = here->send(frame_of(std::string(300'000, 'x')));
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code, ErrorCode::kBusy);
  EXPECT_LE(here->pending_bytes(), 1'400'000U);
  auto there = over(there_, heard_there_);
  EXPECT_TRUE(run_until([&] { return here->pending_bytes() == 0; }));
}

TEST_F(FrameStreamTest, MayBeDestroyedByItsHandlers) {
  std::unique_ptr<FrameStream> there;
  UniqueFd copy(::fcntl(there_.get(), F_DUPFD_CLOEXEC, 3));
  int heard = 0;
  auto made = FrameStream::create(loop(), std::move(there_), std::move(copy),
                                  {.on_frame =
                                       [&](const Frame&) {
                                         ++heard;
                                         there.reset();
                                       },
                                   .on_closed = [](const Error&) { FAIL(); }});
  ASSERT_TRUE(made.ok());
  there = std::move(*made);
  const std::string bytes = stream_bytes(frame_of("a")) + stream_bytes(frame_of("b"));
  ASSERT_EQ(::send(here_.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  ASSERT_TRUE(run_until([&] { return heard == 1; }));
}

TEST_F(FrameStreamTest, SpeaksOverPipes) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  UniqueFd reads(ends[0]);
  auto here = FrameStream::create(loop(), std::move(here_), UniqueFd(ends[1]),
                                  {.on_frame = [](const Frame&) {}, .on_closed = [](const Error&) {}});
  ASSERT_TRUE(here.ok());
  auto there = FrameStream::create(loop(), std::move(reads), std::move(there_),
                                   {.on_frame = [&](Frame frame) { heard_there_.frames.push_back(std::move(frame)); },
                                    .on_closed = [](const Error&) {}});
  ASSERT_TRUE(there.ok());
  ASSERT_TRUE((*here)->send(frame_of(std::string(200'000, 'p'))).ok());
  ASSERT_TRUE(run_until([&] { return heard_there_.frames.size() == 1; }));
  EXPECT_EQ(heard_there_.frames[0], frame_of(std::string(200'000, 'p')));
}

}  // namespace
}  // namespace monarch
