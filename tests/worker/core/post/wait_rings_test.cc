// Who waits for whom: rings are found, and what may still end is none.

#include "worker/core/post/wait_rings.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace monarch {
namespace {

ActorOfRank actor(const std::string& name, std::uint32_t rank = 0) { return {{MeshId(0), Rank(rank)}, name}; }
CallKey call(std::uint64_t id) { return {DoorId(1), id}; }

class WaitRingsTest : public ::testing::Test {
 protected:
  // A call that is one delivery.
  void calls(std::uint64_t id, DeliveryTable::Number delivery, std::optional<ActorOfRank> to) {
    deliveries_[call(id)] = {delivery};
    targets_[delivery] = std::move(to);
  }
  std::vector<std::string> begin(std::uint64_t id, const ActorOfRank& who, DeliveryTable::Number present) {
    std::vector<std::string> names;
    for (const ActorOfRank& one : rings_.begin(
             call(id), {who, 1, present}, [this](const CallKey& key) { return deliveries_[key]; },
             [this](DeliveryTable::Number number) { return targets_[number]; })) {
      names.push_back(one.actor);
    }
    return names;
  }
  using Names = std::vector<std::string>;

  WaitRings rings_;
  std::map<CallKey, std::vector<DeliveryTable::Number>> deliveries_;
  std::map<DeliveryTable::Number, std::optional<ActorOfRank>> targets_;
};

TEST_F(WaitRingsTest, FindsWhoWaitsForItself) {
  calls(1, 5, actor("a"));
  EXPECT_EQ(begin(1, actor("a"), 4), Names{"a"});
  EXPECT_EQ(rings_.size(), 0U) << "it does not wait then";
  EXPECT_EQ(begin(1, actor("a"), 0), Names{"a"}) << "also while it is made";
  EXPECT_EQ(begin(1, actor("a", 1), 4), Names{}) << "another rank's actor of that name";
}

TEST_F(WaitRingsTest, FindsARingAcrossRanks) {
  calls(1, 5, actor("b", 1));
  calls(2, 6, actor("c", 2));
  calls(3, 7, actor("a"));
  EXPECT_EQ(begin(1, actor("a"), 4), Names{});
  EXPECT_EQ(begin(2, actor("b", 1), 5), Names{}) << "it runs what the first waits for";
  EXPECT_EQ(begin(3, actor("c", 2), 6), (Names{"c", "a", "b"}));
  EXPECT_EQ(begin(3, actor("d"), 1), Names{}) << "who waits for a ring's part is none of it";
}

TEST_F(WaitRingsTest, KnowsThatAnEndpointWhichOverlapsIsRun) {
  calls(1, 5, actor("b"));
  calls(2, 6, std::nullopt);
  EXPECT_EQ(begin(1, actor("a"), 4), Names{});
  EXPECT_EQ(begin(2, actor("b"), 5), Names{});
}

// It left it open, and runs a later one now: a thread of its own may answer.
TEST_F(WaitRingsTest, KnowsThatWhatAnActorLeftOpenMayBeAnswered) {
  calls(1, 5, actor("b"));
  calls(2, 3, actor("a"));
  EXPECT_EQ(begin(1, actor("a"), 4), Names{}) << "it ran delivery 3 before";
  EXPECT_EQ(begin(2, actor("b"), 5), Names{});
}

TEST_F(WaitRingsTest, ForgetsWhoWaitsNoMore) {
  calls(1, 5, actor("b"));
  calls(2, 6, actor("a"));
  EXPECT_EQ(begin(1, actor("a"), 4), Names{});
  rings_.end(call(1));
  rings_.end(call(1));
  EXPECT_EQ(begin(2, actor("b"), 5), Names{});
  rings_.left(DoorId(1));
  EXPECT_EQ(rings_.size(), 0U);
  EXPECT_EQ(begin(1, actor("a"), 4), Names{});
  rings_.ended(actor("a").rank, 0);
  EXPECT_EQ(rings_.size(), 1U) << "of an earlier process";
  rings_.ended(actor("a").rank, 1);
  EXPECT_EQ(rings_.size(), 0U);
}

TEST_F(WaitRingsTest, LooksAtEachCallThatAnActorWaitsFor) {
  calls(1, 5, actor("c"));
  calls(2, 6, actor("b"));
  calls(3, 7, actor("a"));
  EXPECT_EQ(begin(1, actor("a"), 4), Names{});
  EXPECT_EQ(begin(2, actor("a"), 4), Names{});
  EXPECT_EQ(begin(3, actor("b"), 6), (Names{"b", "a"}));
}

}  // namespace
}  // namespace monarch
