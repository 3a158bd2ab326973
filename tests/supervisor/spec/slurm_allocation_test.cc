#include "supervisor/spec/slurm_allocation.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "supervisor/core/spec/placement.h"
#include "supervisor/launch/slurm/slurm_spec.h"
#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

using Found = Result<std::optional<Allocation>>;

Found allocation_in(const char* job, const char* nodes) {
  return allocation_from([=](const char* name) -> const char* {
    if (name == std::string_view("SLURM_JOB_ID")) return job;
    return name == std::string_view("SLURM_JOB_NODELIST") ? nodes : nullptr;
  });
}

SpecOutcome load_inside(std::string_view top_lines, const char* job, const char* nodes) {
  return load_spec({.name = "spec.yaml", .text = around_top(top_lines), .directory = "/home/u/job"},
                   {.find_allocation = [job, nodes]() -> Found { return allocation_in(job, nodes); }});
}

std::vector<std::string> names_of(const JobSpec& spec) {
  std::vector<std::string> names;
  for (const PoolHost& host : pool_of(spec)) names.push_back(host.name);
  return names;
}

TEST(SlurmAllocation, IsWhatSlurmSetsInItsJobs) {
  const Found found = allocation_in("4711", "gpu[01-03],login7");
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ(**found, (Allocation{.job = 4711, .nodes = {"gpu01", "gpu02", "gpu03", "login7"}}));
}

TEST(SlurmAllocation, IsNoneWhereNeitherIsSet) {
  const Found found = allocation_in(nullptr, nullptr);
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(*found);
}

TEST(SlurmAllocation, NamesTheVariableThatIsWrong) {
  EXPECT_EQ(allocation_in("7", nullptr).error().message, "SLURM_JOB_ID is set, and SLURM_JOB_NODELIST is not");
  EXPECT_EQ(allocation_in(nullptr, "h1").error().message, "SLURM_JOB_NODELIST is set, and SLURM_JOB_ID is not");
  for (const char* job : {"", "0", "x", "7x", "-7", "4294967296"}) EXPECT_FALSE(allocation_in(job, "h1").ok()) << job;
  EXPECT_EQ(allocation_in("7", "h[3-1]").error().message.substr(0, 20), "SLURM_JOB_NODELIST: ");
}

TEST(SlurmAllocation, OfAHeterogeneousJobIsNone) {
  const std::map<std::string, const char*> het = {
      {"SLURM_JOB_ID", "4711"}, {"SLURM_HET_SIZE", "2"}, {"SLURM_JOB_NODELIST_HET_GROUP_0", "h1"}};
  const Found found = allocation_from([&](const char* name) { return het.contains(name) ? het.at(name) : nullptr; });
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message,
            "it is a heterogeneous job of 2 components (SLURM_HET_SIZE), each with its own number and nodes: those of "
            "the first are "
            "SLURM_JOB_ID_HET_GROUP_0 and SLURM_JOB_NODELIST_HET_GROUP_0 (h1)");
}

TEST(SlurmAllocation, BecomesAPartOfTheJobsOwnSpec) {
  const SpecOutcome inside = load_inside("launch: {slurm: {spares: 1}}\n", "7", "h[1-4]");
  ASSERT_TRUE(inside.loaded) << render(inside);
  EXPECT_EQ(names_of(inside.loaded->spec),
            (std::vector<std::string>{"h1", "h2", "h3", "h4", "new1", "new2", "new3", "new4"}));
  EXPECT_EQ(inside.loaded->spec.spares(), 1U);
  const SpecOutcome later = load_text(inside.loaded->text);
  ASSERT_TRUE(later.loaded) << inside.loaded->text << render(later);
  EXPECT_EQ(later.loaded->spec, inside.loaded->spec);
}

TEST(SlurmAllocation, MayEndWithOneNodeForAllThatSlurmShows) {
  const std::string nodes = "h[1-4]";
  SpecSurroundings around{.find_allocation = [&]() -> Found { return allocation_in("7", nodes.c_str()); }};
  const SpecSource source{.name = "spec.yaml", .text = around_top("launch: {slurm: {}}\n"), .directory = "/home/u/job"};
  const SpecOutcome inside = load_spec(source, around);
  ASSERT_TRUE(inside.loaded) << render(inside);
  ASSERT_EQ(inside.loaded->notes.size(), 1U);
  EXPECT_NE(inside.loaded->notes[0].find("whether job 7 was asked for with --no-kill"), std::string::npos);
  const SpecOutcome later = load_text(inside.loaded->text);
  EXPECT_TRUE(later.loaded->notes.empty()) << "it was said where the job began";
  around.says_no_kill = true;
  EXPECT_TRUE(load_spec(source, around).loaded->notes.empty());
}

TEST(SlurmAllocation, MayHaveMoreNodesLaterAndNeedsItsOwnForTheStart) {
  const SpecOutcome some =
      load_inside("launch: {slurm: {replacements: 2, queue_limit: 1h, own_steps: 16}}\n", "7", "h[1-2]");
  ASSERT_TRUE(some.loaded) << render(some);
  EXPECT_EQ(names_of(some.loaded->spec), (std::vector<std::string>{"h1", "h2", "new1", "new2"}));
  EXPECT_EQ(some.loaded->spec.launch.as<LaunchSlurm>()->queue_limit, Duration::seconds(3'600));
  EXPECT_EQ(some.loaded->spec.launch.as<LaunchSlurm>()->own_steps, 16U);
  const SpecOutcome none = load_inside("launch: {slurm: {replacements: 0}}\n", "7", "h[1-2]");
  EXPECT_EQ(names_of(none.loaded->spec), (std::vector<std::string>{"h1", "h2"}));
  const SpecOutcome small = load_inside("launch: {slurm: {spares: 1}}\n", "7", "h[1-2]");
  EXPECT_EQ(ids(small), std::vector<std::string>{"E0304"}) << "nodes that may never come are none to start on";
}

TEST(SlurmAllocation, IsAskedForByWhatTheSpecSays) {
  const SpecOutcome outcome = load_inside(
      "launch: {slurm: {partition: gpu, account: a, qos: q, time: 90m, constraint: ib, exclude: [bad07], "
      "options: [--mail-type=FAIL]}}\n",
      "7", "h[1-2]");
  ASSERT_TRUE(outcome.loaded) << render(outcome);
  EXPECT_EQ(outcome.loaded->spec.launch.as<LaunchSlurm>()->request, (SlurmRequest{.partition = "gpu",
                                                                                  .account = "a",
                                                                                  .qos = "q",
                                                                                  .time = Duration::seconds(5'400),
                                                                                  .constraint = "ib",
                                                                                  .exclude = {"bad07"},
                                                                                  .options = {"--mail-type=FAIL"}}));
  const SpecOutcome wrong = load_inside("launch: {slurm: {options: [mail-type=FAIL]}}\n", "7", "h[1-2]");
  EXPECT_EQ(ids(wrong), std::vector<std::string>{"E0208"});
}

TEST(SlurmAllocation, IsNotTakenFromTheEnvironmentWhereTheSpecHasOne) {
  const SpecOutcome inside = load_inside("launch: {slurm: {allocation: {job: 8, nodes: 'n[1-2]'}}}\n", "7", "h[1-4]");
  ASSERT_TRUE(inside.loaded) << render(inside);
  EXPECT_EQ(inside.loaded->spec.launch.as<LaunchSlurm>()->allocation->job, 8U);
}

TEST(SlurmAllocation, IsNothingToOtherLaunchers) {
  for (const char* launch : {"", "launch: {local: {}}\n", "launch: {ssh: {hosts: 'n[1-2]'}}\n"}) {
    const SpecOutcome inside = load_inside(launch, "7", "h[1-4]");
    ASSERT_TRUE(inside.loaded) << render(inside);
    EXPECT_EQ(inside.loaded->text, around_top(launch));
  }
}

TEST(SlurmAllocation, IsReportedAtTheLauncherWhereItCannotBeRead) {
  EXPECT_EQ(ids_and_places(load_inside("launch: {slurm: {}}\n", "7", nullptr)),
            (std::vector<std::string>{"E0208 3:10"}));
}

TEST(SlurmAllocation, IsNotNeededToLookAtASpec) {
  const SpecOutcome outside = load_text(around_top("launch: {slurm: {spares: 1}}\n"));
  ASSERT_TRUE(outside.loaded) << render(outside);
  EXPECT_EQ(names_of(outside.loaded->spec), (std::vector<std::string>{"slurm1", "slurm2", "slurm3"}));
  EXPECT_FALSE(outside.loaded->spec.launch.as<LaunchSlurm>()->allocation);
}

TEST(SlurmAllocation, HasToHaveNodesForAll) {
  EXPECT_EQ(ids(load_inside("launch: {slurm: {spares: 1}}\n", "7", "h[1-2]")), std::vector<std::string>{"E0304"});
  EXPECT_EQ(ids(load_text(around_top("launch: {slurm: {nodes: 1}}\n"))), std::vector<std::string>{"E0304"});
  EXPECT_EQ(ids(load_text(around_top("launch: {slurm: {allocation: {job: 7, nodes: 'h[2-1]'}}}\n"))),
            std::vector<std::string>{"E0208"});
}

}  // namespace
}  // namespace monarch
