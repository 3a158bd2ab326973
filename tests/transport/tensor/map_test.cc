// A tensor that is mapped, not copied: it stays as it is for whoever has it, and its publisher goes on.

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/transport/tensor/tensor_gang.h"

namespace monarch::tensor {
namespace {

const Matrix kMatrix{16, 64};

class MapTest : public ::testing::Test {
 protected:
  // Every publisher has all of it.
  static void publish(TensorGang& gang, std::uint64_t version) {
    for (std::uint32_t rank = 0; rank < gang.ranks(); ++rank) {
      Publisher& publisher = gang.publisher(rank);
      ASSERT_TRUE(publisher.begin(version).ok());
      const auto values = kMatrix.part(version, whole({16, 64}));
      ASSERT_TRUE(publisher
                      .put(kMatrix.kind(), whole({16, 64}), reinterpret_cast<const char*>(values.data()),
                           dense_strides({16, 64}, 4))
                      .ok());
      ASSERT_TRUE(publisher.commit().ok());
    }
  }

  std::unique_ptr<Pull> mapping(const TensorGang& gang, const std::string& tensor = "w", LinkWays ways = {}) {
    FinderWords words = Inbox<FinderWord>::create(kFinderWords).value();
    auto finder = std::make_unique<ToldFinder>([&gang, words](bool /*again*/) {
      const finder_word::Found found{.gang = 0, .rank = 0, .generation = gang.generation(), .card = gang.card()};
      EXPECT_TRUE(words->put(found));
    });
    ways.machine = read_boot_id();
    return std::make_unique<Pull>(PullPlace{{"generator", 0, 1}, "trainer", "weights", std::move(ways)}, tensor,
                                  std::move(finder), words);
  }
  static PullOutcome run(Pull& pull, std::optional<PulledVersion> newer_than = {}) {
    return pull.run({.newer_than = newer_than, .timeout = Duration::seconds(10)});
  }
  static bool shows(const Pull& pull, std::uint64_t version) {
    const auto values = kMatrix.part(version, whole({16, 64}));
    return std::memcmp(pull.mapped(), values.data(), values.size() * sizeof values[0]) == 0;
  }
};

TEST_F(MapTest, ShowsAVersionForAsLongAsItIsHeld) {
  TensorGang gang(2, 1);
  publish(gang, 1);
  const auto held = mapping(gang);
  EXPECT_EQ(pulled(run(*held)).version.version.number, 1U);
  EXPECT_EQ(*held->mapped_kind(), kMatrix.kind());
  for (std::uint64_t version = 2; version <= 9; ++version) {
    const Instant begun = boot_now();
    publish(gang, version);
    EXPECT_LT(boot_now() - begun, Duration::seconds(2)) << "whose slot is mapped is waited for by nobody";
    EXPECT_TRUE(shows(*held, 1)) << version;
  }
}

TEST_F(MapTest, GoesOnToANewerVersion) {
  TensorGang gang(1, 1);
  const auto held = mapping(gang);
  std::optional<PulledVersion> seen;
  for (std::uint64_t version = 1; version <= 7; ++version) {
    publish(gang, version);
    const Pulled got = pulled(run(*held, seen));
    seen = got.version;
    EXPECT_EQ(seen->version.number, version);
    EXPECT_EQ(got.by_shm, 1U);
    EXPECT_TRUE(shows(*held, version));
  }
}

// Of more than two old ones the links of those that have the oldest end: what they have stays, and they may come anew.
TEST_F(MapTest, KeepsAPublisherFromNothing) {
  TensorGang gang(1, 1, {.patience = Duration::milliseconds(50)});
  std::vector<std::unique_ptr<Pull>> all;
  for (std::uint64_t version = 1; version <= 8; ++version) {
    publish(gang, version);
    all.push_back(mapping(gang));
    (void)pulled(run(*all.back()));
  }
  for (std::uint64_t version = 1; version <= all.size(); ++version) EXPECT_TRUE(shows(*all[version - 1], version));
  EXPECT_EQ(pulled(run(*all.front())).version.version.number, 8U);
  EXPECT_TRUE(shows(*all.front(), 8));
}

TEST_F(MapTest, SaysWhatCannotBeMapped) {
  TensorGang gang(2, 1);
  gang.publish(kMatrix, 1);  // each has half of it
  EXPECT_EQ(failure(run(*mapping(gang))).text,
            "tensor w of weights of trainer cannot be mapped: no rank has all of it");
  EXPECT_EQ(failure(run(*mapping(gang, "v"))).text, "weights of trainer has no tensor v; it has w");
  TensorGang one(1, 1);
  publish(one, 1);
  const PullFailure none = failure(run(*mapping(one, "w", {.machine = {}, .shm = false})));
  EXPECT_EQ(none.how, PullEnd::kUnreachable);
  EXPECT_NE(none.text.find("shm is not among `tensors.transports`"), std::string::npos) << none.text;
}

}  // namespace
}  // namespace monarch::tensor
