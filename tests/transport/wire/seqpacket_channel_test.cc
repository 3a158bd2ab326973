#include "transport/wire/seqpacket_channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/transport/base/lower_limit.h"
#include "tests/transport/loop/loop_fixture.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_socket.h"

namespace monarch {
namespace {

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

Frame frame_of(std::uint64_t seq, std::string payload = {}) {
  return Frame{.header = {.type = 7, .seq = seq}, .payload = std::move(payload)};
}

UniqueFd null_device() { return UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)); }

// One end of a pair as a channel, with what it was told.
struct End {
  std::unique_ptr<SeqpacketChannel> channel;
  std::vector<Frame> frames;
  std::vector<std::vector<UniqueFd>> descriptors;
  std::vector<Error> closings;
  int drained = 0;

  void open(EventLoop& loop, UniqueFd socket, ChannelLimits limits = {}) {
    auto made = SeqpacketChannel::create(loop, std::move(socket),
                                         {.on_frame =
                                              [this](Frame frame, std::vector<UniqueFd> with) {
                                                frames.push_back(std::move(frame));
                                                descriptors.push_back(std::move(with));
                                              },
                                          .on_closed = [this](Error reason) { closings.push_back(std::move(reason)); },
                                          .on_drained = [this] { ++drained; }},
                                         limits);
    ASSERT_TRUE(made.ok()) << made.error().message;
    channel = std::move(*made);
  }
};

class Channel : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    auto pair = make_channel_pair();
    ASSERT_TRUE(pair.ok());
    a_socket_ = std::move(pair->first);
    b_socket_ = std::move(pair->second);
  }
  void open_both(ChannelLimits limits = {}) {
    a_.open(loop(), std::move(a_socket_), limits);
    b_.open(loop(), std::move(b_socket_), limits);
  }

  UniqueFd a_socket_;
  UniqueFd b_socket_;
  End a_;
  End b_;
};

TEST_F(Channel, CarriesFramesBothWaysInOrder) {
  open_both();
  for (std::uint64_t seq = 1; seq <= 100; ++seq) ASSERT_TRUE(a_.channel->send(frame_of(seq, "to b")).ok());
  ASSERT_TRUE(b_.channel->send(frame_of(7, std::string("to\0a", 4))).ok());
  ASSERT_TRUE(run_until([this] { return b_.frames.size() == 100 && a_.frames.size() == 1; }));
  for (std::uint64_t seq = 1; seq <= 100; ++seq) EXPECT_EQ(b_.frames[seq - 1], frame_of(seq, "to b"));
  EXPECT_EQ(a_.frames[0], frame_of(7, std::string("to\0a", 4)));
}

TEST_F(Channel, CarriesPayloadsOnBothSidesOfTheInlineLimitUnchanged) {
  open_both();
  const std::vector<std::size_t> sizes{0,
                                       1,
                                       limits::kSeqpacketInlineBytes,
                                       limits::kSeqpacketInlineBytes + 1,
                                       1U << 20U,
                                       limits::kSeqpacketPayloadBytes};
  const std::size_t before = open_descriptors();
  for (const std::size_t size : sizes) {
    std::string payload(size, '\0');
    for (std::size_t i = 0; i < size; ++i) payload[i] = static_cast<char>(i * 31 + size);
    ASSERT_TRUE(a_.channel->send(frame_of(size, payload)).ok());
    ASSERT_TRUE(run_until([this] { return b_.frames.size() == 1; }));
    EXPECT_TRUE(b_.frames[0].payload == payload) << size;
    EXPECT_TRUE(b_.descriptors[0].empty());
    b_.frames.clear();
    b_.descriptors.clear();
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(a_.channel->send(frame_of(0, std::string(limits::kSeqpacketPayloadBytes + 1, 'x'))).error().code,
            ErrorCode::kInvalid);
}

TEST_F(Channel, PassesDescriptorsCloseOnExecWithSmallAndLargePayloads) {
  open_both();
  for (const std::size_t size : {std::size_t{3}, limits::kSeqpacketInlineBytes + 1}) {
    std::array<int, 2> pipe_ends{};
    ASSERT_EQ(::pipe2(pipe_ends.data(), O_CLOEXEC), 0);
    const UniqueFd read_end(pipe_ends[0]);
    std::vector<UniqueFd> given;
    given.emplace_back(pipe_ends[1]);
    while (given.size() < limits::kDescriptorsPerMessage) given.push_back(null_device());
    ASSERT_TRUE(a_.channel->send(frame_of(1, std::string(size, 'p')), std::move(given)).ok());
    ASSERT_TRUE(run_until([this] { return b_.frames.size() == 1; }));
    ASSERT_EQ(b_.descriptors[0].size(), limits::kDescriptorsPerMessage);
    const int got = b_.descriptors[0][0].get();
    EXPECT_NE(::fcntl(got, F_GETFD) & FD_CLOEXEC, 0);
    ASSERT_EQ(::write(got, "hi", 2), 2);
    std::array<char, 4> text{};
    EXPECT_EQ(::read(read_end.get(), text.data(), text.size()), 2);
    b_.frames.clear();
    b_.descriptors.clear();
  }
}

TEST_F(Channel, RefusesMoreDescriptorsThanTheLimitAndClosesThem) {
  open_both();
  const std::size_t before = open_descriptors();
  std::vector<UniqueFd> given;
  while (given.size() <= limits::kDescriptorsPerMessage) given.push_back(null_device());
  EXPECT_EQ(a_.channel->send(frame_of(1), std::move(given)).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(Channel, QueuesUntilItsLimitThenSaysBusyAndTellsWhenDrained) {
  a_.open(loop(), std::move(a_socket_), {.queue_frames = 10});
  std::uint64_t sent = 0;
  Status status;
  while ((status = a_.channel->send(frame_of(sent, std::string(50'000, 'x')))).ok()) ++sent;
  EXPECT_EQ(status.error().code, ErrorCode::kBusy);
  EXPECT_EQ(a_.channel->pending_frames(), 10U);
  EXPECT_EQ(a_.channel->pending_bytes(), 10 * (kEnvelopeBytes + kFrameHeaderBytes + 50'000));
  EXPECT_EQ(a_.drained, 0);
  b_.open(loop(), std::move(b_socket_));
  ASSERT_TRUE(run_until([&] { return b_.frames.size() == sent && a_.drained == 1; }));
  for (std::uint64_t seq = 0; seq < sent; ++seq) EXPECT_EQ(b_.frames[seq].header.seq, seq);
  EXPECT_EQ(a_.channel->pending_bytes(), 0U);
  EXPECT_TRUE(a_.channel->send(frame_of(sent)).ok());
}

TEST_F(Channel, BoundsItsQueueInBytesButTakesAnyFrameWhenEmpty) {
  a_.open(loop(), std::move(a_socket_), {.queue_bytes = 100'000});
  while (a_.channel->pending_frames() == 0) ASSERT_TRUE(a_.channel->send(frame_of(1, std::string(60'000, 'x'))).ok());
  EXPECT_EQ(a_.channel->send(frame_of(2, std::string(60'000, 'x'))).error().code, ErrorCode::kBusy);
  EXPECT_TRUE(a_.channel->send(frame_of(3, std::string(10, 'x'))).ok());
  b_.open(loop(), std::move(b_socket_));
  ASSERT_TRUE(run_until([this] { return a_.channel->pending_frames() == 0; }));
  EXPECT_TRUE(a_.channel->send(frame_of(4, std::string(500'000, 'x'))).ok());
}

TEST_F(Channel, KeepsQueuedDescriptorsUntilTheyAreSent) {
  a_.open(loop(), std::move(a_socket_));
  std::uint64_t sent = 0;
  for (; a_.channel->pending_frames() < 3; ++sent) {
    std::vector<UniqueFd> given;
    given.push_back(null_device());
    ASSERT_TRUE(a_.channel->send(frame_of(sent, std::string(50'000, 'x')), std::move(given)).ok());
  }
  b_.open(loop(), std::move(b_socket_));
  ASSERT_TRUE(run_until([&] { return b_.frames.size() == sent; }));
  for (const auto& with : b_.descriptors) {
    ASSERT_EQ(with.size(), 1U);
    EXPECT_GE(::fcntl(with[0].get(), F_GETFD), 0);
  }
}

TEST_F(Channel, PausedItReadsNothingAndItsPeerHasToWait) {
  open_both({.queue_frames = 4});
  b_.channel->pause();
  // Until the buffer between them and the queue are full.
  std::size_t sent = 0;
  while (a_.channel->send(frame_of(sent, std::string(10'000, 'x'))).ok()) ++sent;
  EXPECT_FALSE(run_until([&] { return !b_.frames.empty(); }, Duration::milliseconds(100)));
  b_.channel->resume();
  ASSERT_TRUE(run_until([&] { return b_.frames.size() == sent; }));
}

TEST_F(Channel, PausedItReadsWhatAClosedPeerHadSent) {
  open_both();
  b_.channel->pause();
  for (std::uint64_t seq = 1; seq <= 100; ++seq) ASSERT_TRUE(a_.channel->send(frame_of(seq)).ok());
  a_.channel.reset();
  ASSERT_TRUE(run_until([&] { return !b_.closings.empty(); }));
  EXPECT_EQ(b_.frames.size(), 100U);
}

TEST_F(Channel, CloseSendsWhatWaitsFirst) {
  a_.open(loop(), std::move(a_socket_));
  std::uint64_t sent = 0;
  for (; a_.channel->pending_frames() < 5; ++sent) {
    ASSERT_TRUE(a_.channel->send(frame_of(sent, std::string(50'000, 'x'))).ok());
  }
  a_.channel->close();
  EXPECT_EQ(a_.channel->send(frame_of(sent)).error().code, ErrorCode::kGone);
  EXPECT_TRUE(a_.closings.empty());
  b_.open(loop(), std::move(b_socket_));
  ASSERT_TRUE(run_until([this] { return a_.closings.size() == 1 && b_.closings.size() == 1; }));
  EXPECT_EQ(b_.frames.size(), sent);
  EXPECT_EQ(b_.closings[0].code, ErrorCode::kGone);
}

TEST_F(Channel, CloseWithNothingWaitingIsToldFromTheLoop) {
  open_both();
  a_.channel->close();
  EXPECT_TRUE(a_.closings.empty());
  ASSERT_TRUE(run_until([this] { return a_.closings.size() == 1 && b_.closings.size() == 1; }));
}

TEST_F(Channel, DeliversWhatAClosedPeerHadSentAlsoWhenItReadNothing) {
  open_both();
  ASSERT_TRUE(b_.channel->send(frame_of(1, "never read")).ok());
  ASSERT_TRUE(a_.channel->send(frame_of(2, "last word")).ok());
  a_.channel.reset();  // unread data at a close makes the kernel answer ECONNRESET first
  ASSERT_TRUE(run_until([this] { return !b_.closings.empty(); }));
  ASSERT_EQ(b_.frames.size(), 1U);
  EXPECT_EQ(b_.frames[0].payload, "last word");
  EXPECT_EQ(b_.closings.size(), 1U);
  EXPECT_EQ(b_.closings[0].code, ErrorCode::kGone);
}

TEST_F(Channel, SendingToAClosedPeerIsGoneAndItsLastWordsStillCome) {
  open_both();
  ASSERT_TRUE(a_.channel->send(frame_of(2, "last word")).ok());
  a_.channel.reset();
  EXPECT_EQ(b_.channel->send(frame_of(3)).error().code, ErrorCode::kGone);
  ASSERT_TRUE(run_until([this] { return !b_.closings.empty(); }));
  ASSERT_EQ(b_.frames.size(), 1U);
  EXPECT_EQ(b_.channel->send(frame_of(4)).error().code, ErrorCode::kGone);
}

TEST_F(Channel, APeerThatDiesWhileFramesWaitClosesItOnceAndLeaksNothing) {
  const std::size_t before = open_descriptors();  // with both sockets
  a_.open(loop(), std::move(a_socket_));
  while (a_.channel->pending_frames() < 5) {
    std::vector<UniqueFd> given;
    given.push_back(null_device());
    ASSERT_TRUE(a_.channel->send(frame_of(1, std::string(50'000, 'x')), std::move(given)).ok());
  }
  a_.channel->close();
  b_socket_.reset();
  ASSERT_TRUE(run_until([this] { return !a_.closings.empty(); }));
  EXPECT_EQ(a_.closings[0].code, ErrorCode::kGone);
  loop().turn();
  EXPECT_EQ(a_.closings.size(), 1U);
  EXPECT_EQ(open_descriptors(), before - 2);
}

TEST_F(Channel, MayBeDestroyedByItsOwnHandlers) {
  b_.open(loop(), std::move(b_socket_));
  std::unique_ptr<SeqpacketChannel> channel;
  std::string seen;
  auto made = SeqpacketChannel::create(loop(), std::move(a_socket_),
                                       {.on_frame =
                                            [&](Frame frame, std::vector<UniqueFd>) {
                                              channel.reset();
                                              seen = frame.payload;  // the captures are still there
                                            },
                                        .on_closed = [&](Error) { FAIL() << "destroyed before"; }});
  ASSERT_TRUE(made.ok());
  channel = std::move(*made);
  ASSERT_TRUE(b_.channel->send(frame_of(1, "one")).ok());
  ASSERT_TRUE(b_.channel->send(frame_of(2, "two")).ok());
  ASSERT_TRUE(run_until([&] { return !b_.closings.empty(); }));
  EXPECT_EQ(seen, "one");
}

TEST_F(Channel, MayBeDestroyedWhenItCloses) {
  std::unique_ptr<SeqpacketChannel> channel;
  int closed = 0;
  auto made = SeqpacketChannel::create(loop(), std::move(a_socket_),
                                       {.on_frame = [](Frame, std::vector<UniqueFd>) {},
                                        .on_closed =
                                            [&](Error) {
                                              channel.reset();
                                              ++closed;
                                            }});
  ASSERT_TRUE(made.ok());
  channel = std::move(*made);
  b_socket_.reset();
  ASSERT_TRUE(run_until([&] { return closed == 1; }));
  EXPECT_EQ(channel, nullptr);
}

TEST_F(Channel, AMalformedMessageEndsItWithTheReason) {
  b_.open(loop(), std::move(b_socket_));
  ASSERT_EQ(::send(a_socket_.get(), "hello", 5, 0), 5);
  ASSERT_TRUE(run_until([this] { return !b_.closings.empty(); }));
  EXPECT_EQ(b_.closings[0].code, ErrorCode::kInvalid);
  EXPECT_NE(b_.closings[0].message.find("too short"), std::string::npos) << b_.closings[0].message;
  EXPECT_TRUE(b_.frames.empty());
  EXPECT_FALSE(b_.channel->open());
  EXPECT_EQ(b_.channel->descriptor(), -1);
}

TEST_F(Channel, APayloadOverItsOwnLimitEndsIt) {
  a_.open(loop(), std::move(a_socket_));
  b_.open(loop(), std::move(b_socket_), {.payload_bytes = 100'000});
  ASSERT_TRUE(a_.channel->send(frame_of(1, std::string(100'000, 'x'))).ok());
  ASSERT_TRUE(a_.channel->send(frame_of(2, std::string(100'001, 'x'))).ok());
  ASSERT_TRUE(run_until([this] { return !b_.closings.empty(); }));
  EXPECT_EQ(b_.frames.size(), 1U);
  EXPECT_EQ(b_.closings[0].code, ErrorCode::kInvalid);
}

TEST_F(Channel, AMessageTooLongForTheSocketEndsItAndDoesNotStall) {
  open_both();
  const int small = 1;  // the kernel rounds up to its minimum
  ASSERT_EQ(::setsockopt(a_.channel->descriptor(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
  // The buffer was changed behind its back: EMSGSIZE ends the channel with that reason, it does not stall.
  EXPECT_EQ(a_.channel->send(frame_of(1, std::string(60'000, 'x'))).error().code, ErrorCode::kInternal);
  ASSERT_TRUE(run_until([this] { return !a_.closings.empty(); }));
  EXPECT_EQ(a_.closings[0].code, ErrorCode::kInternal);
}

// Exits 0 when frames with descriptors wait while too many of those are in flight, cost no turns meanwhile, and go when
// there is room. In a child: root is exempt from the limit, and the limit is the process's.
[[noreturn]] void exhaust_descriptors_in_flight(EventLoop& loop, UniqueFd from, UniqueFd to) {
  if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(10);
  constexpr std::size_t kFrames = 4;
  std::vector<std::vector<UniqueFd>> given(kFrames);
  const UniqueFd null = null_device();
  for (auto& with : given) {
    for (int i = 0; i < 16; ++i) with.emplace_back(::fcntl(null.get(), F_DUPFD_CLOEXEC, 0));
  }
  End a;
  a.open(loop, std::move(from));
  rlimit limit{};
  if (!a.channel || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(11);
  const rlim_t usual = std::exchange(limit.rlim_cur, 20);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(12);
  for (auto& with : given) {
    if (!a.channel->send(frame_of(1), std::move(with)).ok()) ::_exit(13);
  }
  if (a.channel->pending_frames() == 0) ::_exit(14);
  bool over = false;
  int turns = 0;
  loop.at(boot_now() + Duration::milliseconds(50), [&over] { over = true; });
  while (!over) {
    loop.run_once();
    ++turns;
  }
  if (turns > 25 || a.channel->pending_frames() == 0) ::_exit(15);
  limit.rlim_cur = usual;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(16);
  End b;
  b.open(loop, std::move(to));
  const TimerId alarm = loop.at(boot_now() + Duration::seconds(10), [] { ::_exit(17); });
  while (b.frames.size() < kFrames) loop.run_once();
  loop.cancel(alarm);
  ::_exit(b.descriptors.back().size() == 16 ? 0 : 18);
}

// Also where the other side has ended meanwhile.
TEST_F(Channel, LeavesWhatItCannotHoldUnreadWithoutSpinning) {
  open_both();
  std::vector<UniqueFd> given;
  given.push_back(null_device());
  ASSERT_TRUE(a_.channel->send(frame_of(1), std::move(given)).ok());
  ASSERT_TRUE(a_.channel->send(frame_of(2)).ok());
  a_.channel.reset();
  {
    const LowerLimit none(RLIMIT_NOFILE, 1);
    bool over = false;
    int turns = 0;
    loop().at(boot_now() + Duration::milliseconds(50), [&over] { over = true; });
    while (!over) {
      loop().run_once();
      ++turns;
    }
    EXPECT_LT(turns, 25);
    EXPECT_TRUE(b_.closings.empty());
    EXPECT_TRUE(b_.frames.empty());
  }
  ASSERT_TRUE(run_until([this] { return b_.closings.size() == 1; }));
  ASSERT_EQ(b_.frames.size(), 2U);
  EXPECT_EQ(b_.descriptors[0].size(), 1U);
  EXPECT_EQ(b_.closings[0].code, ErrorCode::kGone);
}

TEST_F(Channel, WaitsForDescriptorSlotsWithoutSpinning) {
  EXPECT_EXIT(exhaust_descriptors_in_flight(loop(), std::move(a_socket_), std::move(b_socket_)),
              ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace monarch
