#include "transport/wire/seqpacket_message.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/transport/base/lower_limit.h"
#include "transport/wire/sealed_memory.h"
#include "transport/wire/seqpacket_socket.h"

namespace monarch {
namespace {

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

UniqueFd null_device() { return UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)); }

// A message as a hostile peer could write it.
std::string message(unsigned carriage, unsigned descriptors, std::uint32_t announced, std::string_view payload) {
  std::string bytes(kEnvelopeBytes, '\0');
  bytes[0] = static_cast<char>(carriage);
  bytes[1] = static_cast<char>(descriptors);
  for (unsigned i = 0; i < 4; ++i) bytes[4 + i] = static_cast<char>((announced >> (8 * i)) & 0xffU);
  return bytes + encode_header({.type = 7}) + std::string(payload);
}

class Message : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = make_channel_pair();
    ASSERT_TRUE(pair.ok());
    pair_ = std::move(*pair);
  }

  void send_raw(std::string_view bytes, const std::vector<int>& descriptors = {}) {
    iovec piece{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
    alignas(cmsghdr) std::array<char, 1024> control{};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    if (!descriptors.empty()) {
      header.msg_control = control.data();
      header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size() * sizeof(int));
    }
    ASSERT_EQ(::sendmsg(pair_.first.get(), &header, 0), static_cast<ssize_t>(bytes.size())) << errno;
  }

  // Also that no descriptor stays.
  void expect_refused(std::string_view bytes, const std::vector<int>& descriptors, std::string_view why) {
    const std::size_t before = open_descriptors();
    send_raw(bytes, descriptors);
    const auto received = receive_message(pair_.second.get(), limits::kSeqpacketPayloadBytes);
    ASSERT_FALSE(received.ok());
    EXPECT_EQ(received.error().code, ErrorCode::kInvalid);
    EXPECT_NE(received.error().message.find(why), std::string::npos) << received.error().message;
    EXPECT_EQ(open_descriptors(), before);
  }

  ChannelPair pair_;
};

TEST_F(Message, NothingIsThereUntilOneIsSentThenItThenTheEnd) {
  const auto nothing = receive_message(pair_.second.get(), 100);
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->has_value());
  send_raw(message(0, 0, 4, "text"));
  pair_.first.reset();
  auto one = receive_message(pair_.second.get(), 100);
  ASSERT_TRUE(one.ok() && one->has_value());
  EXPECT_EQ((*one)->frame.payload, "text");
  EXPECT_EQ((*one)->frame.header.type, 7);
  EXPECT_EQ(receive_message(pair_.second.get(), 100).error().code, ErrorCode::kGone);
}

TEST_F(Message, NeverBlocksOnASocketThatWouldBlock) {
  for (const int fd : {pair_.first.get(), pair_.second.get()}) ASSERT_EQ(::fcntl(fd, F_SETFL, 0), 0);
  const auto nothing = receive_message(pair_.second.get(), 100);
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->has_value());
  const auto packed = pack_message({.payload = std::string(10'000, 'x')}, {}, limits::kSeqpacketInlineBytes);
  ASSERT_TRUE(packed.ok());
  while (send_message(pair_.first.get(), *packed) == SendOutcome::kSent) continue;
  EXPECT_EQ(send_message(pair_.first.get(), *packed), SendOutcome::kFull);
}

TEST_F(Message, ShortOnesAreRefused) {
  expect_refused("hello", {}, "too short");
  expect_refused(message(0, 0, 0, "").substr(1), {}, "too short");
}
TEST_F(Message, AnUnknownEnvelopeIsRefused) {
  expect_refused(message(9, 0, 0, ""), {}, "not one of ours");
  std::string reserved = message(0, 0, 0, "");
  reserved[3] = 1;
  expect_refused(reserved, {}, "not one of ours");
}
TEST_F(Message, AWrongMagicIsRefused) {
  std::string bytes = message(0, 0, 0, "");
  bytes[kEnvelopeBytes] = 'X';
  expect_refused(bytes, {}, "magic");
}
TEST_F(Message, AnotherLengthThanAnnouncedIsRefused) {
  expect_refused(message(0, 0, 5, "four"), {}, "announced");
  expect_refused(message(0, 0, 3, "four"), {}, "announced");
}
TEST_F(Message, ALengthOverTheLimitIsRefused) {
  const UniqueFd given = null_device();
  expect_refused(message(1, 0, 0xffff'ffff, ""), {given.get()}, "over the limit");
}
TEST_F(Message, AMissingMemfdIsRefused) { expect_refused(message(1, 0, 5, ""), {}, "carries 0"); }
TEST_F(Message, APlainFileForAMemfdIsRefused) {
  const UniqueFd plain = null_device();
  expect_refused(message(1, 0, 5, ""), {plain.get()}, "sealed");
}
TEST_F(Message, AMemfdThatItsWriterCouldChangeIsRefused) {
  for (const int seals : {F_SEAL_GROW | F_SEAL_SHRINK, F_SEAL_GROW | F_SEAL_WRITE, F_SEAL_SHRINK | F_SEAL_WRITE,
                          F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE}) {
    const UniqueFd memory(::memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(::ftruncate(memory.get(), 5), 0);
    ASSERT_EQ(::fcntl(memory.get(), F_ADD_SEALS, seals), 0);
    expect_refused(message(1, 0, 5, ""), {memory.get()}, "sealed");
  }
}
TEST_F(Message, AMemfdOfAnotherLengthIsRefused) {
  const auto memory = make_sealed_memory("test", "123456");
  ASSERT_TRUE(memory.ok());
  expect_refused(message(1, 0, 5, ""), {memory->get()}, "6 bytes was announced as 5");
}
TEST_F(Message, InlineBytesBesideAMemfdAreRefused) {
  const auto memory = make_sealed_memory("test", "12345");
  ASSERT_TRUE(memory.ok());
  expect_refused(message(1, 0, 5, "12345"), {memory->get()}, "announced");
}
TEST_F(Message, TooLongOnesAreRefused) {
  expect_refused(std::string(limits::kSeqpacketInlineBytes + 500, 'x'), {}, "longer than");
}
TEST_F(Message, TooManyDescriptorsAreRefusedAndClosed) {
  const UniqueFd given = null_device();
  expect_refused(message(0, 30, 0, ""), std::vector<int>(30, given.get()), "cut off");
}
TEST_F(Message, DescriptorsThatWereNotAnnouncedAreRefusedAndClosed) {
  const UniqueFd given = null_device();
  expect_refused(message(0, 1, 0, ""), {given.get(), given.get(), given.get()}, "carries 3");
}
TEST_F(Message, WaitsWhereThisProcessCannotHoldItsDescriptors) {
  const UniqueFd given = null_device();
  send_raw(message(0, 3, 5, "first"), {given.get(), given.get(), given.get()});
  send_raw(message(0, 0, 6, "second"));
  const std::size_t before = open_descriptors();
  {
    const LowerLimit none(RLIMIT_NOFILE, 1);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(receive_message(pair_.second.get(), 100).error().code, ErrorCode::kBusy);
  }
  EXPECT_EQ(open_descriptors(), before);
  const auto first = receive_message(pair_.second.get(), 100);
  ASSERT_TRUE(first.ok() && first->has_value());
  EXPECT_EQ((*first)->frame.payload, "first");
  EXPECT_EQ((*first)->descriptors.size(), 3U);
  const auto second = receive_message(pair_.second.get(), 100);
  ASSERT_TRUE(second.ok() && second->has_value());
  EXPECT_EQ((*second)->frame.payload, "second");
}

// A length field at its extreme must not be believed by an allocation.
TEST_F(Message, AHostileLengthCostsNoMemory) {
  rusage before{};
  ASSERT_EQ(::getrusage(RUSAGE_SELF, &before), 0);
  expect_refused(message(0, 0, 0xffff'ffff, "x"), {}, "over the limit");
  const auto memory = make_sealed_memory("test", "x");
  ASSERT_TRUE(memory.ok());
  expect_refused(message(1, 0, limits::kSeqpacketPayloadBytes, ""), {memory->get()}, "was announced as");
  rusage after{};
  ASSERT_EQ(::getrusage(RUSAGE_SELF, &after), 0);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 2048);
}

TEST(SealedMemory, CannotBeChangedByItsMaker) {
  const auto memory = make_sealed_memory("test", "fixed");
  ASSERT_TRUE(memory.ok());
  EXPECT_NE(::pwrite(memory->get(), "x", 1, 0), 1);
  EXPECT_NE(::ftruncate(memory->get(), 0), 0);
  EXPECT_NE(::fcntl(memory->get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
  const auto bytes = read_sealed_memory(memory->get(), 5);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(*bytes, "fixed");
}

}  // namespace
}  // namespace monarch
