#include "supervisor/drill/page/lanes.h"

#include <gtest/gtest.h>

#include "tests/supervisor/drill/page/sample_drill.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

constexpr WallTime at_millisecond(std::int64_t at) { return {at * 1'000'000}; }

// 100 s at ten units of the picture a second.
TimeAxis hundred_seconds() {
  DrillRecord record;
  record.control_from = record.control_to = at_millisecond(1000);
  record.faults_to = at_millisecond(101'000);
  return {record, 0, 1000};
}

LaneSpan span(std::int64_t from, std::int64_t to, TimeBin bin, std::uint64_t generation) {
  return {.from = at_millisecond(from),
          .to = at_millisecond(to),
          .bin = bin,
          .gang = "trainer/0",
          .generation = generation};
}

}  // namespace

TEST(Lanes, ShowWhatIsTooShortToBeSeenAsOnePieceThatNamesItAll) {
  const Lane lane{.host = "v1",
                  .role = "rank",
                  .quiet = false,
                  .spans = {span(0, 20'000, TimeBin::kNew, 1), span(20'000, 30'000, TimeBin::kNew, 1),
                            span(30'000, 30'050, TimeBin::kStill, 1), span(30'050, 30'062, TimeBin::kDeciding, 1),
                            span(30'062, 30'080, TimeBin::kLaunching, 2), span(30'080, 31'500, TimeBin::kStarting, 2),
                            span(31'500, 120'000, TimeBin::kNew, 2)}};
  const std::vector<LanePiece> pieces = pieces_of(lane, hundred_seconds(), true);
  std::vector<std::string> shown;
  for (const LanePiece& piece : pieces) shown.push_back(text(facts_of(piece.ink).name, " | ", piece.title));
  EXPECT_EQ(join(shown, "\n"),
            "new | v1: trainer/0, new steps, 0 to 29s, generation 1\n"
            "still | v1: trainer/0, no step 0.05s, seen, not ordered yet 0.012s, launching 0.018s, 29 to 29.08s, "
            "generation 2\n"
            "starting | v1: trainer/0, program starts, 29.08 to 30.5s, generation 2\n"
            "new | v1: trainer/0, new steps, 30.5 to 100s, generation 2");
  EXPECT_GE(pieces[1].width, 1.0);  // or nobody saw it
  EXPECT_EQ(pieces_of(lane, hundred_seconds(), false)[1].title, "");
}

TEST(Lanes, AreDrawnOfHostsThatDidAnythingAndNoMoreThanThereIsRoomFor) {
  const SampleDrill few = five_faults();
  const LaneChoice chosen = chosen_lanes(few.record, few.report);
  EXPECT_EQ(chosen.drawn.size(), 5U);  // the supervisor, and four hosts that were struck
  EXPECT_EQ(join(chosen.quiet, " "), "v4 v6 v7");
  EXPECT_TRUE(chosen.left_out.empty());
  const SampleDrill many = many_faults(100, 100);
  const LaneChoice crowded = chosen_lanes(many.record, many.report);
  EXPECT_EQ(crowded.drawn.size(), kMostLanes);
  EXPECT_EQ(crowded.drawn.size() + crowded.quiet.size() + crowded.left_out.size(), 101U);
  EXPECT_EQ(some_names({"v1", "v2", "v3"}, 2), "v1, v2 and 1 other");
  EXPECT_EQ(some_names({"v1", "v2", "v3"}, 0), "3 hosts");
}

}  // namespace monarch::drill
