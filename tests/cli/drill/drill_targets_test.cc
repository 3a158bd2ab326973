// Whom a fault's target means, and what its blow is for the host that it strikes.

#include "cli/drill/drill_targets.h"

#include <gtest/gtest.h>

#include <set>

#include "cli/drill/captured_output.h"
#include "cli/drill/drill_orders.h"
#include "supervisor/drill/core/faults.h"
#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

// Ranks 0-3, of gangs of two on a host each, and a spare.
JobSpec two_gangs() {
  const SpecOutcome outcome = load_text(
      "version: 1\n"
      "job: pair\n"
      "launch: {local: {hosts: 3, spares: 1}}\n"
      "supervision: {hang: {action: restart, phases: {step: 3s}}}\n"
      "meshes: {m: {dims: {host: 2, slot: 2}, gang: host, program: [sleep, '9']}}\n");
  return outcome.loaded.value().spec;
}

std::set<std::uint32_t> meant(const drill::FaultTarget& target) {
  const JobSpec spec = two_gangs();
  const DrillTargets targets(spec);
  std::set<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    if (targets.has(target, {MeshId(0), Rank(rank)}, rank < 2 ? "v1" : "v2")) ranks.insert(rank);
  }
  return ranks;
}

TEST(DrillTargets, AreThoseThatAllWordsLeave) {
  using Ranks = std::set<std::uint32_t>;
  EXPECT_EQ(meant({}), (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(meant({.mesh = "m", .rank = "random"}), (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(meant({.rank = "1-2"}), (Ranks{1, 2}));
  EXPECT_EQ(meant({.at = "host=1"}), (Ranks{2, 3}));
  EXPECT_EQ(meant({.gang = "1"}), (Ranks{2, 3}));
  EXPECT_EQ(meant({.host = "v1"}), (Ranks{0, 1}));
  EXPECT_EQ(meant({.rank = "1-2", .host = "v2"}), (Ranks{2}));
}

TEST(DrillTargets, SayWhatIsWrongWithThem) {
  const JobSpec spec = two_gangs();
  const DrillTargets targets(spec);
  EXPECT_EQ(targets.objection({.mesh = "random", .rank = "3"}), std::nullopt);
  EXPECT_NE(targets.objection({.mesh = "trainer"}), std::nullopt);
  EXPECT_NE(targets.objection({.rank = "9"}), std::nullopt);
  EXPECT_NE(targets.objection({.host = "v9"}), std::nullopt);
  EXPECT_EQ(targets.objection({.gang = "2"}), "there is no gang 2");
  EXPECT_EQ(targets.objection({.gang = "x"}), "`x` is not the number of a gang");
}

TEST(DrillOrders, AskTheHostForWhatTheFaultIs) {
  const DrilledJob job{.uuid = "00", .ports = {7'000, 7'001}, .directory = "/jobs/pair", .supervisor_pid = 12};
  for (const drill::Fault& fault : drill::faults()) {
    const drill::Blow blow{.fault = std::string(fault.name), .target = {.host = "v1", .mesh = "m", .rank = 3}};
    const StrikeOrder order = strike_order(blow, {.processes = 2, .percent = 30, .size = 5}, job);
    EXPECT_EQ(order.what, fault.what) << fault.name;
    EXPECT_EQ(order.whom, fault.whom) << fault.name;
    EXPECT_EQ(order.ports.empty(), fault.what != StrikeWhat::kCut) << fault.name;
    EXPECT_EQ(order.supervisor_pid, fault.whom == StrikeWhom::kSupervisor ? 12 : 0) << fault.name;
    EXPECT_EQ(order.rank, 3U);
    EXPECT_EQ(order.percent, 30U);
  }
}

TEST(DrillOrders, KnowTheJobByItsSpec) {
  const JobSpec spec = two_gangs();
  ASSERT_EQ(drill_meshes(spec).size(), 1U);
  EXPECT_EQ(drill_meshes(spec)[0].ranks_per_gang, 2U);
  EXPECT_EQ(drill_meshes(spec)[0].hang, Duration::seconds(3));
  const JobStatus status = status_as_placed(spec);
  ASSERT_EQ(status.hosts.size(), 3U);
  EXPECT_EQ(status.hosts[2].role, "spare");
  EXPECT_EQ(status.meshes[0].ranks[3].host, "v2");
}

TEST(CapturedOutput, SaysWhichRankDiffers) {
  const CapturedOutput undisturbed = {{{"m", 0}, "0.5"}, {{"m", 1}, "0.25"}};
  EXPECT_EQ(difference_of(undisturbed, undisturbed), "");
  EXPECT_EQ(difference_of({{{"m", 0}, "0.5"}, {{"m", 1}, "0.3"}}, undisturbed), "m/1: 0.3, and undisturbed 0.25");
  EXPECT_EQ(difference_of({{{"m", 1}, "0.25"}}, undisturbed), "m/0: it wrote no such line, and undisturbed 0.5");
  EXPECT_EQ(difference_of({{{"m", 1}, "1"}, {{"m", 2}, "2"}}, undisturbed),
            "m/0: it wrote no such line, and undisturbed 0.5, and of 2 ranks more");
}

}  // namespace
}  // namespace monarch
