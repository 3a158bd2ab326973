// What is said of a workspace under way, and how often.

#include "supervisor/launch/ssh/workspace_progress.h"

#include <gtest/gtest.h>

#include "transport/base/text.h"

namespace monarch {
namespace {

constexpr Instant at(int seconds) { return Instant::since_boot(Duration::seconds(1000 + seconds)); }
constexpr std::uint64_t kMebibyte = 1U << 20U;

TEST(WorkspaceProgress, SaysNothingOfWhatIsSoonDone) {
  WorkspaceProgress progress;
  EXPECT_FALSE(progress.note("h1", {.bytes = 0, .of = kMebibyte}, at(0)));
  EXPECT_FALSE(progress.note("h1", {.bytes = kMebibyte / 2, .of = kMebibyte}, at(9)));
  EXPECT_FALSE(progress.note("h1", {.over = true, .has_all = true}, at(11)));
}

TEST(WorkspaceProgress, NamesWhoHasTheMostToComeAndCountsTheRest) {
  WorkspaceProgress progress;
  for (int i = 1; i <= 7; ++i) {
    EXPECT_FALSE(progress.note(text("h", i), {.bytes = 0, .of = static_cast<std::uint64_t>(i) * kMebibyte}, at(0)));
  }
  EXPECT_FALSE(progress.note("h1", {.over = true, .has_all = true}, at(1)));
  EXPECT_FALSE(progress.note("h2", {.over = true}, at(2))) << "a talk that failed";
  const auto said = progress.note("h7", {.bytes = 2 * kMebibyte, .of = 7 * kMebibyte}, at(10));
  ASSERT_TRUE(said);
  EXPECT_EQ(*said, text("sending the workspace: h6 0B of ", "6MiB",
                        ", h5 0B of 5MiB, h7 2MiB of 7MiB, h4 0B of 4MiB and 1 ", "more hosts; 1 host has it"));
}

TEST(WorkspaceProgress, IsBoundedInTimeHoweverManyHostsSpeak) {
  WorkspaceProgress progress;
  int said = 0;
  for (int second = 0; second <= 60; ++second) {
    for (int host = 0; host < 100; ++host) {
      said += progress.note(text("h", host), {.bytes = 1, .of = 100}, at(second)) ? 1 : 0;
    }
  }
  EXPECT_EQ(said, 6);
}

TEST(WorkspaceProgress, BeginsAnewForHostsThatComeLater) {
  WorkspaceProgress progress;
  (void)progress.note("h1", {.bytes = 0, .of = 10}, at(0));
  (void)progress.note("h1", {.over = true, .has_all = true}, at(5));
  EXPECT_FALSE(progress.note("h2", {.bytes = 0, .of = 10}, at(100)));
  EXPECT_TRUE(progress.note("h2", {.bytes = 1, .of = 10}, at(110)));
}

}  // namespace
}  // namespace monarch
