#include "supervisor/away/host_failure.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

LaunchFailure failure(LaunchFailureKind kind) {
  return {.kind = kind,
          .phase = "host key",
          .elapsed = Duration::milliseconds(1'250),
          .message = "another \x1b[2J key",
          .words = "first line\nsecond",
          .again = "ssh gpu7"};
}

TEST(HostFailure, SaysWhatHappenedAndThatNobodyTakesItsPlace) {
  const StartFailure told = start_failure_of("gpu7", failure(LaunchFailureKind::kRefused));
  EXPECT_EQ(told.exit_code, 69);
  for (const char* part : {"gpu7: refused (host key, after 1.2s)", "it said: first line;",
                           "no other host takes its place", "to see it again: ssh gpu7"}) {
    EXPECT_NE(told.message.find(part), std::string::npos) << part << "\n" << told.message;
  }
  EXPECT_EQ(told.message.find('\x1b'), std::string::npos);
  ASSERT_TRUE(told.host);
  EXPECT_EQ(told.host->kind, "refused");
  EXPECT_EQ(told.host->elapsed_milliseconds, 1'250);
}

TEST(HostFailure, OfARefusedKeyHasAStatusOfItsOwn) {
  for (const auto kind :
       {LaunchFailureKind::kHostKeyChanged, LaunchFailureKind::kHostKeyUnknown, LaunchFailureKind::kHostKeyRevoked}) {
    EXPECT_EQ(start_failure_of("gpu7", failure(kind)).exit_code, 3);
  }
}

}  // namespace
}  // namespace monarch
