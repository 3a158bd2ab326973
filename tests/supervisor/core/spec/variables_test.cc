#include "supervisor/core/spec/variables.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

TEST(Variables, OfOursAreSetByNobodyElse) {
  for (const char* const name : {"RANK", "MASTER_ADDR", "TORCHELASTIC_RUN_ID", "MONARCH_RANK", "MONARCH_TRUST",
                                 "MONARCH_NCCL", "MONARCH_NCCL_LIBRARY_", "MONARCH_RDMA"}) {
    EXPECT_TRUE(is_variable_of_ours(name)) << name;
  }
  for (const char* const name : {"PATH", "NCCL_DEBUG", "MONARCH_OPT_QUIET"}) {
    EXPECT_FALSE(is_variable_of_ours(name)) << name;
  }
}

TEST(Variables, ThatTheLibraryOfTensorsReadsAreTheUsers) {
  EXPECT_FALSE(is_variable_of_ours("MONARCH_NCCL_LIBRARY"));
  EXPECT_FALSE(is_variable_of_ours("MONARCH_RDMA_DEVICE"));
}

}  // namespace
}  // namespace monarch
