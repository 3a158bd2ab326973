#include "transport/zmq/context.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

constexpr LibzmqFacts kOldest{.major = 4, .minor = 3, .patch = 3, .curve = true};

TEST(Libzmq, IsFitForUseFromTheVersionThatEndsTheKnownHole) {
  EXPECT_TRUE(fit_for_use(kOldest).ok());
  EXPECT_TRUE(fit_for_use({.major = 4, .minor = 4, .patch = 0, .curve = true}).ok());
  EXPECT_TRUE(fit_for_use({.major = 5, .minor = 0, .patch = 0, .curve = true}).ok());
}

TEST(Libzmq, IsRefusedByNameOfItsVersionWhereItIsOlder) {
  for (const LibzmqFacts old : {LibzmqFacts{.major = 4, .minor = 3, .patch = 2, .curve = true},
                                LibzmqFacts{.major = 4, .minor = 2, .patch = 5, .curve = true},
                                LibzmqFacts{.major = 3, .minor = 99, .patch = 99, .curve = true}}) {
    const Status fit = fit_for_use(old);
    ASSERT_FALSE(fit.ok()) << old.major << "." << old.minor << "." << old.patch;
    EXPECT_EQ(fit.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(fit.error().message, "libzmq " + std::to_string(old.major) + "." + std::to_string(old.minor) + "." +
                                       std::to_string(old.patch) + " is older than 4.3.3, which ends CVE-2020-15166");
  }
}

TEST(Libzmq, IsRefusedWithoutCurve) {
  LibzmqFacts plain = kOldest;
  plain.curve = false;
  const Status fit = fit_for_use(plain);
  ASSERT_FALSE(fit.ok());
  EXPECT_EQ(fit.error().message, "this libzmq was built without CURVE");
}

TEST(Libzmq, ThatIsLinkedIsFitAndSaysItsVersion) {
  EXPECT_TRUE(fit_for_use(libzmq_facts()).ok());
  EXPECT_EQ(libzmq_version().substr(0, 2), "4.");
}

}  // namespace
}  // namespace monarch
