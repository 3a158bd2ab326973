// The pieces of two vaults in one loop; what leads to their connection is carried by the test.

#include "worker/vault/piece_links.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/wire/sealed_memory.h"

namespace monarch::vault {
namespace {

constexpr BlobId kBlob{7};
constexpr std::uint32_t kBytes = kVaultPieceBytes;

class PieceLinksTest : public ::testing::Test {
 protected:
  struct End {
    VaultMemory memory{64U << 20U};
    std::unique_ptr<PieceLinks> links;
    std::vector<std::uint64_t> came;
    std::vector<BlobId> failed;
    int lost = 0;
  };

  void SetUp() override {
    loop_ = EventLoop::create().value();
    loop_->read_clock();
    for (std::uint32_t host = 0; host < 2; ++host) make(host);
    for (std::size_t i = 0; i < content_.size(); ++i) content_[i] = static_cast<char>(i * 31 + (i >> 8U) * 7);
    ASSERT_TRUE(ends_[0].memory.create(kBlob, content_.size()).ok());
    ASSERT_TRUE(ends_[0].memory.write(kBlob, 0, content_).ok());
    ends_[0].memory.close(kBlob);
    ASSERT_TRUE(ends_[1].memory.create(kBlob, content_.size()).ok());
    EXPECT_FALSE(send(1, 0)) << "the first goes beside its message";
    ASSERT_TRUE(until([&] { return send(99, 0); }));  // a number that nobody has asked for
  }
  void TearDown() override {
    for (End& end : ends_) end.links.reset();
  }

  void make(std::uint32_t host) {
    End& end = ends_[host];
    PieceLinks::Handlers handlers{
        .on_piece = [&end](HostId, PeerVia, std::uint64_t number) { end.came.push_back(number); },
        .on_lost = [&end](HostId, PeerVia) { ++end.lost; },
        .on_failed = [&end](BlobId blob, const Status&) { end.failed.push_back(blob); },
        .say =
            [this, host](HostId, PeerVia via, const BodyLinkWord& word) {
              const PeerVia back = via == PeerVia::kOurs ? PeerVia::kTheirs : PeerVia::kOurs;
              loop_->defer([this, host, back, word] { ends_[1 - host].links->heard(HostId(host), back, word); });
            },
        .address_of = [](HostId) { return std::string("127.0.0.1"); }};
    end.links = std::make_unique<PieceLinks>(*loop_, end.memory, PieceLinks::Place{.address = "127.0.0.1"}, handlers);
  }

  // Host 0 has dialled host 1, and sends.
  bool send(std::uint64_t number, std::uint64_t offset, std::uint32_t length = kBytes) {
    return ends_[0].links->send(HostId(1), PeerVia::kOurs, number, kBlob, {.offset = offset, .length = length});
  }
  void ask(std::uint64_t number, std::uint64_t offset, HostId of = HostId(0), PeerVia via = PeerVia::kTheirs) {
    ends_[1].links->asked(of, via, kBlob, {.offset = offset, .length = kBytes, .number = number});
  }
  template <class Done>
  bool until(const Done& done) {
    const Instant end = boot_now() + Duration::seconds(10);
    while (!done() && boot_now() < end) {
      pollfd waiting{loop_->descriptor(), POLLIN, 0};
      const Instant due = std::min(loop_->next_due(), boot_now() + Duration::milliseconds(20));
      (void)::poll(&waiting, 1, EventLoop::wait_milliseconds(boot_now(), due));
      loop_->turn();
    }
    return done();
  }
  std::string written() { return ends_[1].memory.read(kBlob, 0, content_.size()).value(); }

  std::unique_ptr<EventLoop> loop_;
  std::array<End, 2> ends_;
  std::string content_ = std::string(3 * kBytes, '\0');
};

TEST_F(PieceLinksTest, WriteEachPieceWhereItWasAskedFor) {
  ask(12, 2 * kBytes);
  ask(10, 0);
  ask(11, kBytes);
  for (const std::uint64_t number : {11U, 10U, 12U}) EXPECT_TRUE(send(number, (number - 10) * kBytes));
  ASSERT_TRUE(until([&] { return ends_[1].came.size() == 3; }));
  EXPECT_EQ(ends_[1].came, (std::vector<std::uint64_t>{11, 10, 12}));
  EXPECT_TRUE(written() == content_);
  EXPECT_FALSE(send(13, 0, 1'000)) << "a small one goes beside its message";
  EXPECT_FALSE(send(0, 0)) << "so does one whose asker knows no numbers";
}

// Of another host, of another size, said twice, or of a checkpoint that is whole: it is passed over.
TEST_F(PieceLinksTest, WriteNothingThatWasNotAskedFor) {
  ask(10, 0, HostId(5));
  ask(11, 0, HostId(0), PeerVia::kOurs);
  ask(12, 0);
  EXPECT_TRUE(send(10, 0) && send(11, 0) && send(12, 0, kBytes / 2) && send(77, 0));
  ask(20, kBytes);
  EXPECT_TRUE(send(20, kBytes));
  ASSERT_TRUE(until([&] { return !ends_[1].came.empty(); }));
  EXPECT_EQ(ends_[1].came, std::vector<std::uint64_t>{20});
  const std::string none(kBytes, '\0');
  EXPECT_TRUE(written() == none + content_.substr(kBytes, kBytes) + none);
  ask(30, 0);
  ends_[1].links->forget(kBlob);
  EXPECT_TRUE(send(20, 0) && send(30, 0));
  ask(31, 2 * kBytes);
  EXPECT_TRUE(send(31, 2 * kBytes));
  ASSERT_TRUE(until([&] { return ends_[1].came.size() == 2; }));
  EXPECT_TRUE(written() == none + content_.substr(kBytes));
  EXPECT_TRUE(ends_[1].failed.empty());
}

TEST_F(PieceLinksTest, TellOnceOfWhatCannotBeWritten) {
  ends_[1].memory.close(kBlob);
  ask(10, 0);
  ask(11, kBytes);
  EXPECT_TRUE(send(10, 0) && send(11, kBytes));
  ASSERT_TRUE(until([&] { return !ends_[1].failed.empty(); }));
  ASSERT_TRUE(ends_[1].memory.create(BlobId(8), kBytes).ok());
  ends_[1].links->asked(HostId(0), PeerVia::kTheirs, BlobId(8), {.offset = 0, .length = kBytes, .number = 12});
  EXPECT_TRUE(send(12, 0));
  ASSERT_TRUE(until([&] { return !ends_[1].came.empty(); }));
  EXPECT_EQ(ends_[1].came, std::vector<std::uint64_t>{12});
  EXPECT_EQ(ends_[1].failed, std::vector<BlobId>{kBlob});
}

TEST_F(PieceLinksTest, TakeAPieceAgainWhoseConnectionWasLost) {
  ask(10, 0);
  EXPECT_TRUE(send(10, 0));
  ends_[0].links->drop(HostId(1), PeerVia::kOurs);
  ASSERT_TRUE(until([&] { return ends_[0].lost == 1 && ends_[1].lost == 1; }));
  EXPECT_TRUE(ends_[1].came.empty());
  ask(10, 0);
  ASSERT_TRUE(until([&] { return send(10, 0); }));
  ASSERT_TRUE(until([&] { return ends_[1].came.size() == 1; }));
  EXPECT_TRUE(written().substr(0, kBytes) == content_.substr(0, kBytes));
}

}  // namespace
}  // namespace monarch::vault
