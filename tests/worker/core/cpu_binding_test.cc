#include "worker/core/cpu_binding.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

using Cpus = std::vector<std::uint32_t>;

// Two nodes of two cores with two threads each, numbered as Linux mostly does: first threads first, nodes in turn.
HostTopology two_nodes() {
  HostTopology host;
  for (std::uint32_t cpu = 0; cpu < 8; ++cpu) host.cpus.push_back({cpu, cpu % 2, cpu % 2, (cpu % 4) / 2});
  host.gpu_nodes = {{"GPU-a", 0}, {"GPU-b", 1}, {"GPU-far", 7}};
  return host;
}

RankBinding cores(std::uint32_t first, std::uint32_t count) { return {BindKind::kCore, first, count, {}}; }

TEST(CpuBinding, LeavesARankThatAsksForNothingWhereItIs) {
  EXPECT_EQ(bound_cpus(RankBinding{}, two_nodes()).value(), Cpus{});
}

TEST(CpuBinding, GivesTheThreadsOfACoreToTheSameRank) {
  EXPECT_EQ(bound_cpus(cores(0, 2), two_nodes()).value(), (Cpus{0, 4}));
  EXPECT_EQ(bound_cpus(cores(2, 2), two_nodes()).value(), (Cpus{2, 6}));
}

TEST(CpuBinding, NumbersTheNeighboursOfANodeTogether) {
  EXPECT_EQ(bound_cpus(cores(0, 4), two_nodes()).value(), (Cpus{0, 2, 4, 6}));
  EXPECT_EQ(bound_cpus(cores(4, 4), two_nodes()).value(), (Cpus{1, 3, 5, 7}));
}

TEST(CpuBinding, CountsOnlyWhatMayBeUsed) {
  HostTopology host = two_nodes();
  std::erase_if(host.cpus, [](const HostCpu& cpu) { return cpu.number < 3; });
  EXPECT_EQ(bound_cpus(cores(0, 1), host).value(), Cpus{4});
  EXPECT_EQ(bound_cpus(cores(4, 1), host).value(), Cpus{7});
}

TEST(CpuBinding, RefusesProcessorsThatTheHostDoesNotHave) {
  EXPECT_EQ(bound_cpus(cores(6, 2), two_nodes()).value(), (Cpus{3, 7}));
  const auto refused = bound_cpus(cores(7, 2), two_nodes());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "bind to cores 7-8: the host has 8 for this job, numbered from 0");
  EXPECT_FALSE(bound_cpus(cores(0xffffffff, 2), two_nodes()).ok());
  EXPECT_FALSE(bound_cpus(cores(0, 0), two_nodes()).ok());
  EXPECT_FALSE(bound_cpus({BindKind::kNuma, 8, 1, {}}, two_nodes()).ok());
}

TEST(CpuBinding, TakesTheWholeNodeOfTheFirstGpu) {
  EXPECT_EQ(bound_cpus({BindKind::kNuma, 0, 1, {"GPU-b", "GPU-a"}}, two_nodes()).value(), (Cpus{1, 3, 5, 7}));
}

TEST(CpuBinding, TakesTheNodeOfTheRanksShareWhereTheGpusIsNotKnownOrNotToBeUsed) {
  EXPECT_EQ(bound_cpus({BindKind::kNuma, 4, 1, {"GPU-unknown"}}, two_nodes()).value(), (Cpus{1, 3, 5, 7}));
  EXPECT_EQ(bound_cpus({BindKind::kNuma, 3, 1, {"GPU-far"}}, two_nodes()).value(), (Cpus{0, 2, 4, 6}));
  EXPECT_EQ(bound_cpus({BindKind::kNuma, 0, 1, {}}, two_nodes()).value(), (Cpus{0, 2, 4, 6}));
}

TEST(CpuList, IsReadAsItIsWritten) {
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11\n"), (Cpus{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(cpu_list({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(parse_cpu_list("\n"), Cpus{});
  for (const char* wrong : {"3-1", "a", "1-", "-1", "1,,2", "0-4294967295"})
    EXPECT_FALSE(parse_cpu_list(wrong)) << wrong;
}

}  // namespace
}  // namespace monarch
