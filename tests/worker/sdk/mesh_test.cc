#include <monarch/mesh.hpp>

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace monarch {
namespace {

using Runs = std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>>;

// 2 hosts of 4 GPUs, each with 2 lanes.
View whole() {
  return {"trainer", {{.name = "host", .size = 2}, {.name = "gpu", .size = 4}, {.name = "lane", .size = 2}}};
}

Runs runs_of(const View& view) {
  Runs runs;
  for (const monarch_ranks_v1& run : view.ranks()) runs.emplace_back(run.first, run.count, run.step);
  return runs;
}

std::string refusal(const auto& cut) {
  try {
    (void)cut();
  } catch (const BadArguments& bad) {
    return bad.what();
  }
  return "";
}

TEST(Coordinates, CountTheLastDimensionFastest) {
  EXPECT_EQ(to_string(Coordinates::of(13, whole().dims())), "(1,2,1)");
  EXPECT_EQ(to_string(Coordinates::of(0, {})), "()");
  EXPECT_EQ(Coordinates::of(13, whole().dims())[1], 2U);
}

TEST(View, IsTheWholeMeshAtFirst) {
  EXPECT_EQ(whole().size(), 16U);
  EXPECT_EQ(runs_of(whole()), (Runs{{0, 16, 1}}));
  EXPECT_EQ(runs_of(View("one", {})), (Runs{{0, 1, 1}}));
}

TEST(View, IsCutByDimensions) {
  EXPECT_EQ(runs_of(whole().at("host", 1)), (Runs{{8, 8, 1}}));
  EXPECT_EQ(runs_of(whole().at("lane", 1)), (Runs{{1, 8, 2}}));
  const View some = whole().slice("gpu", 1, 3).at("lane", 0);
  EXPECT_EQ(some.dims(), (std::vector<Dimension>{{.name = "host", .size = 2}, {.name = "gpu", .size = 2}}));
  EXPECT_EQ(runs_of(some), (Runs{{2, 2, 2}, {10, 2, 2}}));
  EXPECT_EQ(runs_of(whole().slice("gpu", 0, 4, 3).at("lane", 1).at("host", 0)), (Runs{{1, 2, 6}}));
  EXPECT_EQ(runs_of(whole().slice("gpu", 1, 4).slice("gpu", 1, 3).at("host", 0).at("lane", 0)), (Runs{{4, 2, 2}}));
  EXPECT_EQ(some.rank(3), 12U);
  EXPECT_EQ(runs_of(some.only(3)), (Runs{{12, 1, 1}}));
}

TEST(View, SaysWhatCannotBeCut) {
  EXPECT_EQ(refusal([] { return whole().at("gpus", 1); }),
            "this view of trainer has no dimension `gpus`; it has host, gpu, lane");
  EXPECT_EQ(refusal([] { return whole().at("gpu", 4); }), "trainer has no 4 in `gpu`, which has 4");
  EXPECT_EQ(refusal([] { return whole().slice("gpu", 1, 5); }), "slice 1 to 5 by 1 of trainer: `gpu` has 4");
  EXPECT_EQ(refusal([] { return whole().slice("gpu", 2, 2); }), "slice 2 to 2 by 1 of trainer: `gpu` has 4");
  EXPECT_EQ(refusal([] { return whole().slice("gpu", 0, 2, 0); }), "slice 0 to 2 by 0 of trainer: `gpu` has 4");
  EXPECT_EQ(refusal([] { return whole().at("gpu", 1).at("gpu", 1); }),
            "this view of trainer has no dimension `gpu`; it has host, lane");
}

TEST(View, Travels) {
  const View some = whole().slice("gpu", 1, 3).at("lane", 0);
  View read;
  codec::DecodeError error;
  ASSERT_TRUE(codec::decode(codec::encode(some), read, error)) << error.what;
  EXPECT_EQ(read, some);
}

}  // namespace
}  // namespace monarch
