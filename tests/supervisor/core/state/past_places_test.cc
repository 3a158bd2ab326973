#include "supervisor/core/state/past_places.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

Generation generation(std::uint64_t counter, std::uint64_t term = 1) { return {Term(term), counter}; }

TEST(PastPlaces, SayWhereAGenerationRanUntilTheNextMove) {
  std::vector<PastPlace> places;
  EXPECT_FALSE(ran_on(places, generation(1), 0, HostId(0)));
  note_place(places, generation(1), {HostId(0), HostId(1)});
  note_place(places, generation(2), {HostId(0), HostId(1)});
  note_place(places, generation(4, 2), {HostId(0), HostId(2)});
  EXPECT_EQ(places.size(), 2U) << "a start in place is no move";
  EXPECT_TRUE(ran_on(places, generation(2), 1, HostId(1)));
  EXPECT_FALSE(ran_on(places, generation(2), 1, HostId(2)));
  EXPECT_FALSE(ran_on(places, generation(2), 0, HostId(1))) << "nor for another's ranks";
  EXPECT_TRUE(ran_on(places, generation(4, 2), 1, HostId(2)));
  EXPECT_TRUE(ran_on(places, generation(9, 2), 0, HostId(0)));
  EXPECT_FALSE(ran_on(places, generation(9, 2), 2, HostId(0)));
}

TEST(PastPlaces, ForgetTheOldestMoves) {
  std::vector<PastPlace> places;
  for (std::uint32_t i = 1; i <= kPlacesKept + 1; ++i) note_place(places, generation(i), {HostId(i)});
  EXPECT_EQ(places.size(), kPlacesKept);
  EXPECT_FALSE(ran_on(places, generation(1), 0, HostId(1)));
  EXPECT_TRUE(ran_on(places, generation(2), 0, HostId(2)));
}

}  // namespace
}  // namespace monarch
