// Plans against a copy element by element, over random layouts; and what a plan says where it cannot be made.

#include "transport/tensor/core/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace monarch::tensor {
namespace {

constexpr std::uint64_t kElement = 4;

// Calls run(index, offset) for each element of a box, with its place in memory of such strides.
template <class Run>
void each_element(const Box& box, const Extents& strides, const Run& run) {
  Extents at = box.at;
  for (std::uint64_t left = elements(box.size).value(); left > 0; --left) {
    std::uint64_t offset = 0;
    for (std::size_t dim = 0; dim < at.size(); ++dim) offset += (at[dim] - box.at[dim]) * strides[dim];
    run(at, offset);
    for (std::size_t dim = at.size(); dim-- > 0;) {
      if (++at[dim] < box.end(dim)) break;
      at[dim] = box.at[dim];
    }
  }
}

std::uint32_t value_of(const Extents& at) {
  std::uint32_t value = 17;
  for (std::size_t dim = 0; dim < at.size(); ++dim) value = value * 1'000'003U + static_cast<std::uint32_t>(at[dim]);
  return value;
}

using Memory = std::vector<unsigned char>;

// Owners' memory with the right value of each element that they have.
std::map<std::uint32_t, Memory> memory_of(const std::vector<Shard>& shards) {
  std::map<std::uint32_t, Memory> memory;
  for (const Shard& shard : shards) {
    Memory& of = memory[shard.owner];
    of.resize(std::max<std::size_t>(of.size(), shard.offset + elements(shard.box.size).value() * kElement));
    each_element(shard.box, dense_strides(shard.box.size, kElement), [&](const Extents& at, std::uint64_t offset) {
      const std::uint32_t value = value_of(at);
      std::memcpy(of.data() + shard.offset + offset, &value, kElement);
    });
  }
  return memory;
}

// Copies as the plan says; counts how often each byte was written.
void run_plan(const std::vector<Copy>& copies, const std::map<std::uint32_t, Memory>& from, Memory& to,
              Memory& written) {
  for (const Copy& copy : copies) {
    std::uint64_t rows = 0;
    for_each_row(copy, [&](std::uint64_t source, std::uint64_t destination) {
      ++rows;
      const Memory& owner = from.at(copy.owner);
      ASSERT_LE(source + copy.row, owner.size());
      ASSERT_LE(destination + copy.row, to.size());
      std::memcpy(to.data() + destination, owner.data() + source, copy.row);
      for (std::uint64_t i = 0; i < copy.row; ++i) ++written[destination + i];
    });
    EXPECT_EQ(rows, copy.rows());
  }
}

class Layouts {
 public:
  explicit Layouts(std::uint32_t seed) : random_(seed) {}
  std::uint64_t below(std::uint64_t end) {
    return end == 0 ? 0 : std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random_);
  }

  Extents shape() {
    Extents shape(below(5));
    for (std::size_t dim = 0; dim < shape.size(); ++dim) shape[dim] = 1 + below(9);
    return shape;
  }
  // Cuts a shape into boxes that are all of it, some of them twice, in any order.
  std::vector<Shard> shards(const Extents& shape) {
    std::vector<Box> boxes{whole(shape)};
    for (std::uint64_t cuts = below(12); cuts > 0 && shape.size() > 0; --cuts) {
      Box& box = boxes[below(boxes.size())];
      const std::size_t dim = below(shape.size());
      if (box.size[dim] < 2) continue;
      Box rest = box;
      const std::uint64_t keep = 1 + below(box.size[dim] - 1);
      box.size[dim] = keep;
      rest.at[dim] += keep;
      rest.size[dim] -= keep;
      boxes.push_back(rest);
    }
    for (std::uint64_t copies = below(4); copies > 0; --copies) boxes.push_back(boxes[below(boxes.size())]);
    // One that overlaps others as it likes.
    if (below(2) == 0) boxes.push_back(part_of(shape));
    std::shuffle(boxes.begin(), boxes.end(), random_);
    std::vector<Shard> shards;
    std::map<std::uint32_t, std::uint64_t> ends;
    for (const Box& box : boxes) {
      const auto owner = static_cast<std::uint32_t>(below(4));
      std::uint64_t& end = ends[owner];
      shards.push_back({box, owner, end, static_cast<std::uint32_t>(below(3))});
      end += elements(box.size).value() * kElement + below(3) * kElement;
    }
    return shards;
  }
  Box part_of(const Extents& shape) {
    Box box = whole(shape);
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      box.at[dim] = below(shape[dim]);
      box.size[dim] = below(4) == 0 ? shape[dim] - box.at[dim] : 1 + below(shape[dim] - box.at[dim]);
    }
    return box;
  }
  // Some order of the dimensions but the last, and room between rows.
  Place place(const Extents& shape) {
    Place place{.box = part_of(shape), .strides = Extents(shape.size()), .offset = below(5) * kElement};
    std::vector<std::size_t> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    if (order.size() > 1 && below(3) == 0) std::shuffle(order.begin(), order.end() - 1, random_);
    std::uint64_t next = kElement;
    for (std::size_t i = order.size(); i-- > 0;) {
      place.strides[order[i]] = next;
      next *= place.box.size[order[i]];
      if (below(3) == 0) next += below(3) * kElement;
    }
    return place;
  }

 private:
  std::mt19937 random_;
};

TEST(Plan, CopiesWhatElementByElementIsThere) {
  for (std::uint32_t seed = 1; seed <= 2'000; ++seed) {
    SCOPED_TRACE(seed);
    Layouts layouts(seed);
    const Extents shape = layouts.shape();
    const std::vector<Shard> shards = layouts.shards(shape);
    const Place place = layouts.place(shape);
    ASSERT_TRUE(check_strides(place.box.size, place.strides, kElement).ok());
    const auto plan = make_plan(shards, {place}, kElement);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    std::uint64_t end = place.offset + kElement;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) end += (place.box.size[dim] - 1) * place.strides[dim];
    Memory to(end);
    Memory written(end);
    run_plan(*plan, memory_of(shards), to, written);
    Memory wanted(end);
    each_element(place.box, place.strides, [&](const Extents& at, std::uint64_t offset) {
      const std::uint32_t value = value_of(at);
      std::memcpy(wanted.data() + place.offset + offset, &value, kElement);
      for (std::uint64_t i = 0; i < kElement; ++i) {
        ASSERT_EQ(written[place.offset + offset + i], 1) << "each byte once";
      }
    });
    ASSERT_EQ(to, wanted);
  }
}

TEST(Plan, IsOneCopyWhereRowsLieBehindEachOther) {
  const Shard shard{.box = whole({64, 32, 8}), .owner = 3, .offset = 4096};
  const auto all = make_plan({shard}, {{whole({64, 32, 8}), dense_strides({64, 32, 8}, 2), 10}}, 2);
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ(all->front(), (Copy{.owner = 3, .source = 4096, .destination = 10, .row = 64 * 32 * 8 * 2}));
  // Columns of a matrix: as many rows, one loop.
  const auto columns = make_plan({{.box = whole({64, 32, 8}), .owner = 0}},
                                 {{{{0, 0, 2}, {64, 32, 4}}, dense_strides({64, 32, 4}, 2), 0}}, 2);
  ASSERT_EQ(columns->size(), 1U);
  EXPECT_EQ(columns->front().row, 8U);
  EXPECT_EQ(columns->front().depth, 1U);
  EXPECT_EQ(columns->front().loops[0], (Copy::Loop{64 * 32, 16, 8}));
}

TEST(Plan, TakesOfEqualShardsTheOneThatIsPreferred) {
  const auto plan = make_plan({{whole({4}), 1, 0, 2}, {whole({4}), 2, 0, 1}, {whole({4}), 3, 0, 1}},
                              {{whole({4}), dense_strides({4}, 4), 0}}, 4);
  ASSERT_EQ(plan->size(), 1U);
  EXPECT_EQ(plan->front().owner, 2U);
}

TEST(Plan, NamesWhatNobodyHas) {
  const std::vector<Shard> shards{{{{0, 0}, {4, 8}}, 0, 0, 0}, {{{4, 4}, {4, 4}}, 1, 0, 0}};
  const auto plan = make_plan(shards, {{whole({8, 8}), dense_strides({8, 8}, 4), 0}}, 4);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(plan.error().message, "nobody has [4:8, 0:4]");
  EXPECT_TRUE(make_plan({}, {{{{2, 0}, {0, 8}}, dense_strides({0, 8}, 4), 0}}, 4)->empty()) << "nothing is wanted";
  EXPECT_EQ(make_plan({}, {{whole({}), dense_strides({}, 4), 0}}, 4).error().message, "nobody has []");
}

// As many shards on both sides, cut otherwise, are no product of theirs.
TEST(Plan, OfThousandsOfShardsIsMadeAtOnce) {
  constexpr std::uint64_t kShards = 4'096;
  std::vector<Shard> shards;
  std::vector<Place> places;
  for (std::uint64_t i = 0; i < kShards; ++i) {
    shards.push_back({{{i * 3, 0}, {3, 16}}, static_cast<std::uint32_t>(i), 0, 0});
    const Box box{{(kShards - 1 - i) * 3, 0}, {3, 16}};
    places.push_back({box, dense_strides(box.size, 4), 0});
  }
  places.front().box.at[0] -= 1;
  const auto began = std::chrono::steady_clock::now();
  const auto plan = make_plan(shards, places, 4);
  const auto took = std::chrono::steady_clock::now() - began;
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->size(), kShards + 1);
  EXPECT_LT(took, std::chrono::seconds(1)) << "milliseconds, on a machine that has time";
}

// Diagonal shards: each cuts what all before it have left open, and none of it is ever whole.
std::vector<Shard> diagonal(std::uint64_t count) {
  std::vector<Shard> shards;
  for (std::uint64_t i = 0; i < count; ++i) {
    shards.push_back({{{0, i * 2, i * 2}, {1, 1, 1}}, static_cast<std::uint32_t>(i), 0, 0});
  }
  return shards;
}

TEST(Plan, EndsWhereItsTimeDoes) {
  const Extents shape{1, 1U << 20U, 1U << 20U};
  const std::vector<Place> places{{whole(shape), dense_strides(shape, 4), 0}};
  std::uint64_t asked = 0;
  PlanBudget budget{.is_over = [&] { return ++asked == 3; }};
  const auto plan = make_plan(diagonal(4'096), places, 4, budget);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(plan.error().message, "no plan of its parts was made in time");
  EXPECT_EQ(asked, 3U);
}

TEST(Plan, TakesNoMoreStepsThanItHas) {
  const Extents shape{1, 1U << 20U, 1U << 20U};
  const std::vector<Place> places{{whole(shape), dense_strides(shape, 4), 0}};
  PlanBudget budget{.steps = 100'000};
  const auto plan = make_plan(diagonal(4'096), places, 4, budget);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(plan.error().message, "its parts are cut so that a plan of them would take too much time or memory");
  // As many shards that are cut as anybody cuts them are a fraction of that.
  std::vector<Shard> rows;
  for (std::uint64_t i = 0; i < 4'096; ++i) rows.push_back({{{i * 4}, {4}}, static_cast<std::uint32_t>(i), 0, 0});
  PlanBudget same{.steps = 100'000};
  EXPECT_TRUE(make_plan(rows, {{whole({16'384}), dense_strides({16'384}, 4), 0}}, 4, same).ok());
  EXPECT_GT(same.steps, 80'000U);
}

TEST(Strides, AreRefusedWhereRowsCannotBeWritten) {
  const auto why = [](const Extents& shape, const Extents& strides) {
    const Status fits = check_strides(shape, strides, 4);
    return fits.ok() ? std::string() : fits.error().message;
  };
  EXPECT_EQ(why({8, 4}, {16, 4}), "");
  EXPECT_EQ(why({8, 4, 2}, {8, 64, 4}), "") << "in another order";
  EXPECT_EQ(why({8, 1}, {400, 4}), "") << "a column";
  EXPECT_EQ(why({8, 4}, {4, 32}),
            "its last dimension is not dense: elements of 4 bytes are 32 bytes from one to the next");
  EXPECT_EQ(why({8, 4}, {0, 4}),
            "its elements lie on each other: dimension 0 has a stride of 0 bytes, and what it steps over has 4");
  EXPECT_EQ(why({8, 4}, {12, 4}),
            "its elements lie on each other: dimension 0 has a stride of 12 bytes, and what it steps over has 16");
  EXPECT_EQ(why({8, 4}, {4}), "1 strides for 2 dimensions");
  EXPECT_EQ(why({8, 4}, {1ULL << 62U, 4}), "dimension 0 is larger than can be counted");
}

TEST(Box, IsCutIntoWhatAHoleLeaves) {
  const Box from = whole({4, 4, 4});
  const Box hole{{1, 1, 1}, {2, 2, 2}};
  std::uint64_t left = 0;
  const auto rest = without(from, hole);
  for (std::size_t i = 0; i < rest.size(); ++i) {
    left += elements(rest[i].size).value();
    EXPECT_FALSE(intersection(rest[i], hole));
    for (std::size_t other = 0; other < i; ++other) EXPECT_FALSE(intersection(rest[i], rest[other]));
  }
  EXPECT_EQ(left, 64U - 8U);
  EXPECT_TRUE(without(from, from).empty());
  EXPECT_EQ(to_text(hole), "[1:3, 1:3, 1:3]");
  EXPECT_EQ(to_text(Extents{8192, 4096}), "8192 x 4096");
}

TEST(Box, IsWithinAShapeOrNot) {
  EXPECT_TRUE(is_within({{1, 0}, {3, 4}}, {4, 4}));
  EXPECT_FALSE(is_within({{1, 0}, {4, 4}}, {4, 4}));
  EXPECT_FALSE(is_within({{~std::uint64_t{0}, 0}, {2, 1}}, {4, 4})) << "no sum overflows";
  EXPECT_FALSE(is_within({{0}, {4}}, {4, 4}));
  EXPECT_TRUE(is_within(whole({}), {}));
  EXPECT_FALSE(elements({1ULL << 40U, 1ULL << 40U}));
}

}  // namespace
}  // namespace monarch::tensor
