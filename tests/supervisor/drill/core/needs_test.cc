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

}  // namespace
}  // namespace monarch::drill
