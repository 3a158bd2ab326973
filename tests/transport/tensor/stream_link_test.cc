// A link over a pair of sockets: frames, bodies, descriptors, rows and words, in any pieces.

#include "transport/tensor/stream_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/tensor/core/index.h"

namespace monarch::tensor {
namespace {

constexpr std::uint64_t kSlot = 4U << 20U;

class StreamLinkTest : public ::testing::Test {
 protected:
  StreamLinkTest() { connect(); }
  void connect() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    owner_ = StreamLink::make(UniqueFd(ends[0])).value();
    reader_ = StreamLink::make(UniqueFd(ends[1])).value();
  }
  // What the reader gets next, while the owner sends.
  std::optional<StreamLink::Received> next(std::uint64_t most = kMostFrameLength) {
    for (int turn = 0; turn < 100'000; ++turn) {
      EXPECT_TRUE(owner_->flush().ok());
      auto received = reader_->receive(most);
      if (!received.ok()) {
        why_ = received.error().message;
        return std::nullopt;
      }
      if (*received) return std::move(*received);
    }
    return std::nullopt;
  }
  // All bytes of the rows, into pieces of that size.
  std::string rows(std::size_t piece) {
    std::string all;
    while (reader_->rows_left() > 0) {
      EXPECT_TRUE(owner_->flush().ok());
      std::string first(std::min<std::size_t>(piece, reader_->rows_left()), '\0');
      const iovec into{first.data(), first.size()};
      const auto got = reader_->read_rows(&into, 1);
      if (!got.ok()) return all;
      all.append(first, 0, *got);
    }
    return all;
  }
  static std::shared_ptr<Slot> some_slot() {
    std::shared_ptr<Slot> slot = Slot::make(kSlot).value();
    for (std::uint64_t i = kSlotHeaderBytes; i < kSlot; ++i) slot->start()[i] = static_cast<char>(i * 7 + (i >> 9U));
    slot->commit(5);
    return slot;
  }
  static LinkFrame rows_of(std::uint64_t offset, std::uint32_t count, std::uint64_t row, std::uint64_t pitch) {
    LinkFrame frame{.kind = FrameKind::kRows, .version = {1, 5}};
    frame.offset = offset;
    frame.rows = count;
    frame.row = row;
    frame.pitch = pitch;
    return frame;
  }

  std::unique_ptr<StreamLink> owner_;
  std::unique_ptr<StreamLink> reader_;
  std::string why_;
};

TEST_F(StreamLinkTest, CarriesFramesWithWhatIsBehindThem) {
  const std::string index(5U << 20U, 'i');
  ASSERT_TRUE(owner_->send({.kind = FrameKind::kOpened, .version = {2, 8}}, index).ok());
  ASSERT_TRUE(owner_->send({.kind = FrameKind::kOver}).ok());
  const auto opened = next();
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->frame.version, (VersionId{2, 8}));
  EXPECT_EQ(opened->behind, index);
  EXPECT_EQ(next()->frame.kind, FrameKind::kOver);
  EXPECT_FALSE(owner_->wants_to_write());
}

TEST_F(StreamLinkTest, SendsRowsFromTheSlotInAnyPieces) {
  const auto slot = some_slot();
  for (const LinkFrame& asked : {rows_of(kSlotHeaderBytes, 1, kSlot - kSlotHeaderBytes, 0),
                                 rows_of(8'192, 700, 513, 4'096), rows_of(kSlotHeaderBytes + 3, 100'000, 7, 11)}) {
    ASSERT_TRUE(owner_->send_rows(asked, slot).ok());
    const auto here = next();
    ASSERT_TRUE(here);
    EXPECT_EQ(here->frame.kind, FrameKind::kRowsHere);
    EXPECT_EQ(here->frame.length, asked.rows * asked.row);
    std::string wanted;
    for (std::uint32_t row = 0; row < asked.rows; ++row) {
      wanted.append(slot->start() + asked.offset + row * asked.pitch, asked.row);
    }
    EXPECT_EQ(rows(100'003), wanted);
  }
}

TEST_F(StreamLinkTest, LooksAtTheWordWhenItsTurnComes) {
  const auto slot = some_slot();
  const LinkFrame all = rows_of(kSlotHeaderBytes, 1, kSlot - kSlotHeaderBytes, 0);
  ASSERT_TRUE(owner_->send_rows(all, slot).ok());
  ASSERT_TRUE(owner_->send_word({.kind = FrameKind::kWord, .version = {1, 5}}, slot).ok());
  ASSERT_TRUE(owner_->flush().ok());
  slot->begin();  // before all rows are on their way
  ASSERT_TRUE(next());
  EXPECT_EQ(rows(1U << 20U).size(), all.row);
  const auto word = next();
  ASSERT_TRUE(word);
  EXPECT_EQ(word->frame.kind, FrameKind::kWord);
  EXPECT_EQ(word->frame.offset, 0U) << "it is being written";
}

TEST_F(StreamLinkTest, GivesADescriptorBesideAFrame) {
  const auto slot = some_slot();
  ASSERT_TRUE(owner_->send({.kind = FrameKind::kOver}).ok());
  ASSERT_TRUE(owner_->send_slot({.kind = FrameKind::kSlot, .slot = 1, .length = slot->bytes()}, slot).ok());
  EXPECT_FALSE(next()->descriptor.valid());
  const auto here = next();
  ASSERT_TRUE(here && here->descriptor.valid());
  const auto view = SlotView::open(here->descriptor, here->frame.length);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ((*view)->word(), word_of(5));
}

// Who asks for a slot again and again, and reads nothing, has none of the owner's descriptors.
TEST_F(StreamLinkTest, HasNoDescriptorThatWaits) {
  const auto slot = some_slot();
  const auto open_here = [] {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
  };
  const std::size_t before = open_here();
  const LinkFrame asked{.kind = FrameKind::kSlot, .slot = 1, .length = slot->bytes()};
  for (int i = 0; i < 2'000; ++i) {
    ASSERT_TRUE(owner_->send_slot(asked, slot).ok());
    ASSERT_TRUE(i % 64 != 0 || owner_->flush().ok());
  }
  EXPECT_TRUE(owner_->wants_to_write());
  EXPECT_EQ(open_here(), before);
  for (int i = 0; i < 2'000; ++i) ASSERT_TRUE(next()->descriptor.valid()) << i;
}

TEST_F(StreamLinkTest, TellsTheEndAndWhatIsNone) {
  ASSERT_TRUE(owner_->send({.kind = FrameKind::kOpened}, std::string(100, 'x')).ok());
  EXPECT_FALSE(next(99));
  EXPECT_EQ(why_, "a frame with 100 bytes behind it, and at most 99 are taken");
  connect();
  ASSERT_EQ(::write(owner_->descriptor(), std::string(kFrameBytes, 'x').data(), kFrameBytes), 64);
  EXPECT_FALSE(next());
  EXPECT_EQ(why_, "a frame that is none");
  connect();
  ASSERT_TRUE(reader_->send({.kind = FrameKind::kRead}).ok());
  owner_.reset();
  const auto gone = reader_->receive(0);
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, ErrorCode::kGone);
  EXPECT_EQ(reader_->flush().error().code, ErrorCode::kGone);
}

TEST_F(StreamLinkTest, KeepsNoMoreForAPeerThatDoesNotRead) {
  const auto slot = some_slot();
  const LinkFrame asked = rows_of(kSlotHeaderBytes, 1, 1U << 20U, 0);
  std::size_t queued = 0;
  while (owner_->send_rows(asked, slot).ok()) {
    ++queued;
    ASSERT_TRUE(owner_->flush().ok());
  }
  EXPECT_GE(queued, StreamLink::kUnsent);
  EXPECT_EQ(owner_->send({.kind = FrameKind::kOver}).error().code, ErrorCode::kBusy);
}

}  // namespace
}  // namespace monarch::tensor
