#include "supervisor/core/state/launch_times.h"

#include <gtest/gtest.h>

#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::job_of;

constexpr LaunchTimes kWarm{.log_in = Duration::milliseconds(52), .start = Duration::milliseconds(21)};

TEST(LaunchTimes, SayNothingOfWhatTookNoTime) {
  EXPECT_EQ(where_time_went(kWarm, Duration::microseconds(4'700)), " (log-in 52ms, start 21ms, call back 4ms)");
  EXPECT_EQ(where_time_went({.waited = Duration::seconds(2), .copy = Duration::milliseconds(310)}, Duration::zero()),
            " (waited 2s, copy 310ms)");
}

TEST(LaunchTimes, AreNoneWhereTheLauncherMeasuredNone) {
  EXPECT_EQ(where_time_went({}, Duration::seconds(1)), "");
  EXPECT_TRUE(launch_details({}, Duration::seconds(1)).empty());
}

TEST(LaunchTimes, AreInTheEventOfTheHostThatIsReady) {
  Driver job(job_of(2, 1));
  job.begin();
  job.step(
      WorkerLaunched{.host = HostId(0), .worker = {.reply = {.public_key = "key", .keeper_pid = 100}, .times = kWarm}});
  job.step(WorkerJoined{.host = HostId(0), .incarnation = 1}, Duration::milliseconds(9));
  JobEvent ready;
  for (const Action& action : job.actions_of<EmitEvent>()) {
    if (std::get<EmitEvent>(action).event.kind == EventKind::kHostReady) ready = std::get<EmitEvent>(action).event;
  }
  EXPECT_EQ(ready.message, "v1: worker is connected (log-in 52ms, start 21ms, call back 9ms)");
  const std::vector<std::pair<std::string, std::string>> details = {
      {"waited_ms", "0"}, {"log_in_ms", "52"}, {"copy_ms", "0"}, {"start_ms", "21"}, {"call_back_ms", "9"}};
  EXPECT_EQ(ready.details, details);
}

}  // namespace
}  // namespace monarch
