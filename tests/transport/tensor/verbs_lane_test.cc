// What goes wrong on the way through a network card, on a fabric that has none (fake_verbs.h); and which card it is.

#include "transport/tensor/verbs/verbs_lane.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/transport/tensor/fake_verbs.h"
#include "tests/transport/tensor/tensor_gang.h"
#include "tests/transport/tensor/test_devices.h"
#include "transport/tensor/verbs/open_verbs.h"

namespace monarch::tensor {
namespace {

const Matrix kMatrix{64, 2'048};  // rows of 8 KiB

class VerbsLaneTest : public ::testing::Test {
 protected:
  static LinkWays ways(bool tcp) { return {.machine = {}, .shm = false, .verbs = true, .tcp = tcp}; }

  const TestDevices devices;
  const std::shared_ptr<FakeFabric> fabric = devices.shared_fabric();  // owners: this, and what it has given out
};

TEST_F(VerbsLaneTest, KeepsSoManyReadsUnderWayAndNoMore) {
  TensorGang gang(1, 1);
  gang.publish(kMatrix, 1);
  ColumnReader reader(kMatrix, 5, 2'000, ways(false));
  reader.finds(gang);
  EXPECT_EQ(pulled(reader.run()).by_verbs, 1U);
  EXPECT_TRUE(reader.is_whole(1));
  EXPECT_EQ(fabric->largest, VerbsLane::kUnderWay);
  EXPECT_EQ(fabric->reads_done, kMatrix.rows + 1) << "its rows, and the word";
}

TEST_F(VerbsLaneTest, AsksTheOwnersProcessNothingOnceItKnowsHisSlots) {
  TensorGang gang(1, 1);
  ColumnReader reader(kMatrix, 0, 2'048, ways(false));
  reader.finds(gang);
  std::optional<PulledVersion> seen;
  for (std::uint64_t version = 1; version <= 2; ++version) {
    gang.publish(kMatrix, version);
    seen = pulled(reader.run(seen)).version;
  }
  const std::uint64_t before = fabric->reads_done;
  gang.publish(kMatrix, 3);
  (void)pulled(reader.run(seen));
  EXPECT_TRUE(reader.is_whole(3));
  EXPECT_EQ(fabric->reads_done - before, 2U + 2U + 1U) << "two words, 512 KiB in two READs, and the word again";
}

TEST_F(VerbsLaneTest, TakesShortRowsOverTheLink) {
  test_reader_verbs.short_row = 4'096;
  TensorGang gang(2, 1);
  gang.publish(kMatrix, 1);
  ColumnReader narrow(kMatrix, 8, 16, ways(false));
  narrow.finds(gang);
  EXPECT_EQ(pulled(narrow.run()).by_verbs, 2U);
  EXPECT_TRUE(narrow.is_whole(1));
  EXPECT_EQ(fabric->reads_done, 0U);
  ColumnReader wide(kMatrix, 8, 2'000, ways(false));
  wide.finds(gang);
  (void)pulled(wide.run());
  EXPECT_TRUE(wide.is_whole(1));
  EXPECT_GT(fabric->reads_done, 0U);
}

// One tensor of long rows, and one of short ones, in one pull: each owner's word is looked at on both ways.
TEST_F(VerbsLaneTest, TakesLongAndShortRowsTogether) {
  test_reader_verbs.short_row = 4'096;
  const Matrix small{64, 16};
  TensorGang gang(1, 1);
  std::optional<PulledVersion> seen;
  std::vector<std::int32_t> long_rows(64 * 2'048);
  std::vector<std::int32_t> short_rows(64 * 8);
  auto inbox = Inbox<FinderWord>::create(kFinderWords).value();
  const FinderWords words = std::move(inbox);
  const auto found = [&](bool /*again*/) {
    EXPECT_TRUE(words->put(finder_word::Found{.gang = 0, .rank = 0, .generation = 1, .card = gang.card()}));
  };
  std::vector<PullPart> parts;
  parts.push_back({kMatrix.kind("w"), whole({64, 2'048}), reinterpret_cast<char*>(long_rows.data()),
                   dense_strides({64, 2'048}, 4)});
  parts.push_back(
      {small.kind("b"), Box{{0, 4}, {64, 8}}, reinterpret_cast<char*>(short_rows.data()), dense_strides({64, 8}, 4)});
  LinkWays by = ways(false);
  by.machine = read_boot_id();
  Pull pull({{"generator", 0, 1}, "trainer", "weights", by, test_reader_verbs}, parts,
            std::make_unique<ToldFinder>(found), words);
  for (std::uint64_t version = 1; version <= 5; ++version) {
    Publisher& publisher = gang.publisher(0);
    ASSERT_TRUE(publisher.begin(version).ok());
    const auto w = kMatrix.part(version, whole({64, 2'048}));
    const auto b = small.part(version, whole({64, 16}));
    const auto put = [&](const TensorKind& kind, const Extents& shape, const std::vector<std::int32_t>& values) {
      const Status done =
          publisher.put(kind, whole(shape), reinterpret_cast<const char*>(values.data()), dense_strides(shape, 4));
      ASSERT_TRUE(done.ok()) << done.error().message;
    };
    put(kMatrix.kind("w"), {64, 2'048}, w);
    put(small.kind("b"), {64, 16}, b);
    ASSERT_TRUE(publisher.commit().ok());
    seen = pulled(pull.run({.newer_than = seen, .timeout = Duration::seconds(20)})).version;
    EXPECT_EQ(seen->version.number, version);
    EXPECT_EQ(long_rows, w);
    EXPECT_EQ(short_rows, small.part(version, {{0, 4}, {64, 8}}));
  }
}

TEST_F(VerbsLaneTest, GoesOverTheLinkWhereAReadFails) {
  for (const int reads : {0, 1, 7, 40, 64}) {
    TensorGang gang(2, 1);
    gang.publish(kMatrix, 1);
    ColumnReader reader(kMatrix, 5, 2'000, ways(true));
    reader.finds(gang);
    fabric->reads_left = reads;
    const Pulled got = pulled(reader.run());
    fabric->reads_left = -1;
    EXPECT_TRUE(reader.is_whole(1)) << reads;
    EXPECT_GE(got.by_tcp, 1U);
    EXPECT_EQ(got.why_not_verbs, "a READ failed: scripted");
    gang.publish(kMatrix, 2);
    EXPECT_GE(pulled(reader.run(got.version)).by_tcp, 1U) << "what has failed once is not tried again on that link";
    EXPECT_TRUE(reader.is_whole(2));
  }
}

TEST_F(VerbsLaneTest, FailsOnALivingLinkWhereTcpIsNotAllowed) {
  TensorGang gang(1, 1);
  gang.publish(kMatrix, 1);
  ColumnReader reader(kMatrix, 0, 2'048, ways(false));
  reader.finds(gang);
  fabric->reads_left = 1;
  const PullFailure failed = failure(reader.run());
  EXPECT_EQ(failed.how, PullEnd::kUnreachable);
  EXPECT_EQ(
      failed.text,
      "trainer/0: no common transport: tcp is not among `tensors.transports`, and verbs: a READ failed: scripted");
}

// The link says who lives; that READs fail says nothing.
TEST_F(VerbsLaneTest, HearsFromTheLinkThatAnOwnerIsGone) {
  for (const bool tcp : {true, false}) {
    auto gang = std::make_unique<TensorGang>(1, 1);
    gang->publish(kMatrix, 1);
    ColumnReader reader(kMatrix, 0, 2'048, ways(tcp));
    reader.finds(*gang);
    fabric->holds = true;
    std::thread trouble([&] {
      while (fabric->largest == 0) std::this_thread::yield();
      reader.finds_nobody();
      gang.reset();
      fabric->holds = false;
    });
    EXPECT_EQ(failure(reader.run({}, Duration::seconds(10))).how, PullEnd::kPeerGone);
    trouble.join();
    fabric->largest = 0;
  }
}

TEST_F(VerbsLaneTest, GoesOverTheLinkWhereTheOwnerLosesItsQueue) {
  TensorGang gang(1, 1);
  gang.publish(kMatrix, 1);
  ColumnReader reader(kMatrix, 0, 2'048, ways(true));
  reader.finds(gang);
  const Pulled first = pulled(reader.run());
  EXPECT_EQ(first.by_verbs, 1U);
  fabric->lose_queues();
  gang.publish(kMatrix, 2);
  const Pulled second = pulled(reader.run(first.version));
  EXPECT_EQ(second.by_tcp, 1U);
  EXPECT_EQ(second.why_not_verbs, "a READ failed: transport retry counter exceeded");
  EXPECT_TRUE(reader.is_whole(2));
}

// When a run has ended nothing writes into its memory: what was under way is drained first.
TEST_F(VerbsLaneTest, WritesNothingAfterItsReturn) {
  TensorGang gang(1, 1);
  gang.publish(kMatrix, 1);
  ColumnReader reader(kMatrix, 0, 2'048, ways(true));
  reader.finds(gang);
  fabric->holds = true;
  EXPECT_EQ(failure(reader.run({}, Duration::milliseconds(100))).how, PullEnd::kTimeout);
  const std::vector<std::int32_t> before = reader.memory;
  fabric->holds = false;
  EXPECT_EQ(fabric->reads_done, 0U);
  EXPECT_EQ(reader.memory, before);
  EXPECT_EQ(pulled(reader.run()).by_verbs, 1U);
  EXPECT_TRUE(reader.is_whole(1));
}

TEST_F(VerbsLaneTest, SaysWhatCannotBeLocked) {
  TensorGang gang(1, 1);
  gang.publish(kMatrix, 1);
  fabric->destination_limit = 4'096;
  ColumnReader reader(kMatrix, 0, 2'048, ways(true));
  reader.finds(gang);
  const Pulled got = pulled(reader.run());
  EXPECT_EQ(got.by_tcp, 1U);
  EXPECT_EQ(got.why_not_verbs, "512KiB of memory cannot be locked");
  EXPECT_TRUE(reader.is_whole(1));
  fabric->destination_limit = UINT64_MAX;
  fabric->memory_limit = 4'096;
  ColumnReader another(kMatrix, 0, 2'048, ways(true));
  another.finds(gang);
  const Pulled refused = pulled(another.run());
  EXPECT_EQ(refused.by_tcp, 1U);
  EXPECT_EQ(refused.why_not_verbs, "516KiB of memory cannot be locked");
  EXPECT_TRUE(another.is_whole(1));
}

TEST_F(VerbsLaneTest, SaysWhyTheOtherSideHasNone) {
  const VerbsEnd ours = test_verbs;
  test_verbs = test_reader_verbs = {.device = nullptr, .why_not = "no libibverbs.so.1 on this machine"};
  TensorGang gang(1, 1);
  gang.publish(kMatrix, 1);
  ColumnReader without(kMatrix, 0, 2'048, ways(true));
  test_reader_verbs = ours;
  ColumnReader with(kMatrix, 0, 2'048, ways(true));
  for (ColumnReader* const reader : {&without, &with}) {
    reader->finds(gang);
    const Pulled got = pulled(reader->run());
    EXPECT_EQ(got.by_tcp, 1U);
    EXPECT_EQ(got.why_not_verbs, "no libibverbs.so.1 on this machine");
    EXPECT_TRUE(reader->is_whole(1));
  }
}

TEST_F(VerbsLaneTest, ProvesADeviceBeforeItIsOffered) {
  FakeLibrary library(fabric, {test_verbs.device->facts()});
  EXPECT_NE(open_verbs(library, {}).device, nullptr);
  fabric->reads_left = 0;
  EXPECT_EQ(open_verbs(library, {}).why_not, "fake0 does not READ from itself: scripted");
  fabric->reads_left = -1;
  fabric->memory_limit = 100;
  EXPECT_EQ(open_verbs(library, {}).why_not, "4KiB of memory cannot be locked");
  FakeLibrary none(fabric, {});
  EXPECT_EQ(open_verbs(none, {}).why_not, "no RDMA device");
}

}  // namespace
}  // namespace monarch::tensor
