#include "supervisor/drill/core/needs.h"

#include <gtest/gtest.h>

namespace monarch::drill {
namespace {

TEST(DrillNeeds, AreMetByWhatAHostAllows) {
  using enum FaultNeed;
  using enum RanksTraced;
  const FaultRights bare{.no_nft_because = "there is no nft (nftables)", .tables = {}, .ptrace_scope = 1};
  EXPECT_EQ(unmet_need(kNothing, bare, kByTheirKeeper), "");
  EXPECT_EQ(unmet_need(kNft, bare, kByTheirKeeper), "there is no nft (nftables)");
  EXPECT_NE(unmet_need(kTracing, bare, kByTheirKeeper).find("drills: {allow: true}"), std::string::npos);
  EXPECT_EQ(unmet_need(kTracing, bare, kByAnybody), "");
  const FaultRights strict{.no_nft_because = {}, .tables = {}, .ptrace_scope = 2};
  EXPECT_EQ(unmet_need(kNft, strict, kByTheirKeeper), "");
  EXPECT_EQ(unmet_need(kTracing, strict, kByAnybody),
            "only root traces processes there (kernel.yama.ptrace_scope is 2)");
  const FaultRights root{.no_nft_because = {}, .tables = {}, .ptrace_scope = 3, .traces_all = true};
  EXPECT_EQ(unmet_need(kTracing, root, kByTheirKeeper), "");
  EXPECT_EQ(unmet_need(kTracing, FaultRights{}, kByTheirKeeper), "") << "there is no Yama";
}

TEST(DrillNeeds, AreToldOfAllHostsByWhatTheOthersLack) {
  const auto traced = RanksTraced::kByTheirKeeper;
  const FaultRights bare{.no_nft_because = "there is no nft", .tables = {}, .ptrace_scope = 1};
  const std::vector<HostRights> hosts = {{.host = "v1", .rights = {}, .error = ""},
                                         {.host = "v2", .rights = bare, .error = ""},
                                         {.host = "v3", .rights = bare, .error = ""},
                                         {.host = "v4", .rights = {}, .error = "it did not answer"}};
  const WhereHad cut = where_had(*find_fault("cut"), hosts, traced);
  EXPECT_EQ(cut.hosts, 1U);
  EXPECT_EQ(cut.why_not, "v[2-3]: there is no nft; v4: it did not answer");
  EXPECT_EQ(where_had(*find_fault("kill"), hosts, traced).hosts, 3U);
  EXPECT_EQ(where_had(*find_fault("kill"), hosts, traced).why_not, "v4: it did not answer");
  const WhereHad supervisor = where_had(*find_fault("supervisor-kill"), hosts, traced);
  EXPECT_EQ(supervisor.hosts, 4U);
  EXPECT_EQ(supervisor.why_not, "");
}

}  // namespace
}  // namespace monarch::drill
