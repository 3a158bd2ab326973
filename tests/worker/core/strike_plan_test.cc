#include "worker/core/strike_plan.h"

#include <gtest/gtest.h>

#include <csignal>

namespace monarch {
namespace {

const std::vector<StrikeCandidate> kThere = {{.pid = 10, .role = StrikeRole::kRank, .mesh = "m", .rank = 2},
                                             {.pid = 11, .role = StrikeRole::kOther},
                                             {.pid = 12, .role = StrikeRole::kDaemon},
                                             {.pid = 13, .role = StrikeRole::kKeeper},
                                             {.pid = 14, .role = StrikeRole::kRank, .mesh = "other", .rank = 2}};

std::vector<std::int32_t> pids_of(const StrikeOrder& order) {
  const auto plan = plan_strike(order, kThere);
  EXPECT_TRUE(plan.ok());
  std::vector<std::int32_t> pids;
  for (const Blow& blow : *plan) pids.push_back(blow.pid);
  return pids;
}

TEST(StrikePlan, HitsThoseThatAreMeant) {
  EXPECT_EQ(pids_of({.what = StrikeWhat::kSegv, .whom = StrikeWhom::kRank, .mesh = "m", .rank = 2}),
            std::vector<std::int32_t>{10});
  EXPECT_EQ(pids_of({.what = StrikeWhat::kKill, .whom = StrikeWhom::kDaemon}), std::vector<std::int32_t>{12});
  EXPECT_EQ(pids_of({.what = StrikeWhat::kStop, .whom = StrikeWhom::kKeeper}), std::vector<std::int32_t>{13});
}

TEST(StrikePlan, BeginsWithWhoWouldSeeTheOthers) {
  EXPECT_EQ(pids_of({.what = StrikeWhat::kStop, .whom = StrikeWhom::kWorker}), (std::vector<std::int32_t>{13, 12}));
  EXPECT_EQ(pids_of({.what = StrikeWhat::kStop, .whom = StrikeWhom::kHost}),
            (std::vector<std::int32_t>{13, 12, 10, 14, 11}));
}

TEST(StrikePlan, TellsARankFromWhatItLeavesToItsKeeper) {
  const auto child = [](std::int32_t pid, const char* generation, bool leads, unsigned long long born) {
    return StrikeCandidate{.pid = pid,
                           .role = StrikeRole::kRank,
                           .mesh = "m",
                           .rank = 2,
                           .generation = generation,
                           .leads_session = leads,
                           .born = born};
  };
  std::vector<StrikeCandidate> there = {child(7, "1", true, 900),
                                        child(20, "1", true, 500),
                                        child(9, "1", false, 400),
                                        child(30, "2", true, 950),
                                        {.pid = 11, .role = StrikeRole::kKeeper}};
  tell_ranks_apart(there);
  std::vector<std::int32_t> ranks;
  for (const StrikeCandidate& one : there) {
    if (one.role == StrikeRole::kRank) ranks.push_back(one.pid);
  }
  EXPECT_EQ(ranks, (std::vector<std::int32_t>{20, 30})) << "an incarnation of each generation";
}

TEST(StrikePlan, SendsTheSignalOfItsName) {
  const auto signal_of = [](StrikeWhat what) {
    return plan_strike({.what = what, .whom = StrikeWhom::kRank, .mesh = "m", .rank = 2}, kThere)->front().signal;
  };
  EXPECT_EQ(signal_of(StrikeWhat::kKill), SIGKILL);
  EXPECT_EQ(signal_of(StrikeWhat::kSegv), SIGSEGV);
  EXPECT_EQ(signal_of(StrikeWhat::kAbort), SIGABRT);
  EXPECT_EQ(signal_of(StrikeWhat::kStop), SIGSTOP);
}

TEST(StrikePlan, SaysWhoIsNotThereAndWhatMakesNoSense) {
  const auto none = plan_strike({.what = StrikeWhat::kKill, .whom = StrikeWhom::kRank, .mesh = "m", .rank = 7}, kThere);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(none.error().message, "no process of rank m/7 of the job is on this host");
  EXPECT_EQ(plan_strike({.what = StrikeWhat::kSegv, .whom = StrikeWhom::kHost}, kThere).error().code,
            ErrorCode::kInvalid);
  EXPECT_EQ(plan_strike({.what = StrikeWhat::kBusy}, kThere).error().code, ErrorCode::kInvalid);
}

StrikeOrder cut() { return {.what = StrikeWhat::kCut, .address = "10.77.0.1", .ports = {4711, 4712}}; }

TEST(StrikePlan, CutsBothWaysOrOne) {
  const auto both = cut_script(cut(), "t");
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(*both,
            "table inet t {\n"
            "  chain input {\n"
            "    type filter hook input priority -300; policy accept;\n"
            "    ip saddr 10.77.0.1 tcp sport { 4711, 4712 } counter drop\n"
            "  }\n"
            "  chain output {\n"
            "    type filter hook output priority -300; policy accept;\n"
            "    ip daddr 10.77.0.1 tcp dport { 4711, 4712 } counter drop\n"
            "  }\n"
            "}\n");
  StrikeOrder in = cut();
  in.way = StrikeWay::kIn;
  EXPECT_EQ(cut_script(in, "t")->find("output"), std::string::npos);
  StrikeOrder out = cut();
  out.way = StrikeWay::kOut;
  out.percent = 10;
  out.address = "fd77::1";
  EXPECT_NE(
      cut_script(out, "t")->find("ip6 daddr fd77::1 tcp dport { 4711, 4712 } counter numgen random mod 100 < 10 drop"),
      std::string::npos);
}

TEST(StrikePlan, CutsByPortsAloneWhereNoAddressIsSaid) {
  StrikeOrder order = cut();
  order.address = "";
  const auto script = cut_script(order, "t");
  ASSERT_TRUE(script.ok());
  EXPECT_NE(script->find("policy accept;\n    tcp sport { 4711, 4712 } counter drop\n"), std::string::npos) << *script;
}

TEST(StrikePlan, CountsPacketsThatNftTellsOf) {
  EXPECT_EQ(packets_counted(""), 0U);
  EXPECT_EQ(packets_counted("a counter packets 0 bytes 0 drop\nb counter packets 3 bytes 180 drop\n"
                            "c counter packets 40 bytes 9 numgen random mod 100 < 10 drop"),
            43U);
  EXPECT_EQ(packets_counted("counter packets "), 0U);
}

TEST(StrikePlan, KillsOrStopsASupervisorAndNothingElse) {
  const std::vector<StrikeCandidate> there = {{.pid = 9, .role = StrikeRole::kSupervisor}};
  const auto plan = plan_strike({.what = StrikeWhat::kKill, .whom = StrikeWhom::kSupervisor}, there);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->front().pid, 9);
  EXPECT_EQ(plan_strike({.what = StrikeWhat::kTerm, .whom = StrikeWhom::kSupervisor}, there).error().code,
            ErrorCode::kInvalid);
  EXPECT_EQ(plan_strike({.what = StrikeWhat::kKill, .whom = StrikeWhom::kSupervisor}, kThere).error().message,
            "no supervisor of the job is on this host");
}

TEST(StrikePlan, CallsSlowWhoGetsLittleAndWantsMore) {
  const auto use = [](int ran, int waited) {
    return CpuUse{
        .ran = Duration::milliseconds(ran), .waited = Duration::milliseconds(waited), .over = Duration::seconds(1)};
  };
  EXPECT_TRUE(is_slow(use(500, 500)));
  EXPECT_TRUE(is_slow(use(700, 2000))) << "of many threads";
  EXPECT_FALSE(is_slow(use(710, 290)));
  EXPECT_FALSE(is_slow(use(300, 50))) << "it wants no more";
}

TEST(StrikePlan, LeavesAHostATwentiethOfItsMemory) {
  EXPECT_EQ(memory_to_leave(50, 1000).value(), 50U);
  const auto refused = memory_to_leave(1U << 20U, 100U << 20U);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "1MiB are too little to leave: a host of 100MiB needs 5MiB, which is 5 %");
}

TEST(StrikePlan, SaysWhoRefusesToHaveAProcessTraced) {
  EXPECT_EQ(tracing_refused(1), "refused by Yama (ptrace_scope 1)");
  const std::string kernel = "refused by the kernel: it lets no other process of this user trace it";
  EXPECT_EQ(tracing_refused(0), kernel);
  EXPECT_EQ(tracing_refused(std::nullopt), kernel);
}

TEST(StrikePlan, TakesNothingForAnAddressThatNftCouldTakeForMore) {
  for (const char* address : {"h1", "10.0.0.1 tcp dport 22 drop; #", "10.0.0.1\n"}) {
    StrikeOrder order = cut();
    order.address = address;
    EXPECT_EQ(cut_script(order, "t").error().code, ErrorCode::kInvalid) << address;
  }
  StrikeOrder order = cut();
  order.ports = {};
  EXPECT_EQ(cut_script(order, "t").error().code, ErrorCode::kInvalid);
  order = cut();
  order.percent = 101;
  EXPECT_EQ(cut_script(order, "t").error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace monarch
