// Each life is what its header draws, and nothing but one step of it can be written.

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "supervisor/core/state/crew_life.h"
#include "supervisor/core/state/gang_life.h"
#include "supervisor/core/state/host_life.h"
#include "supervisor/core/state/job_life.h"
#include "supervisor/core/state/rank_life.h"

namespace monarch {
namespace {

// Each phase, with one that may follow it.
template <typename Phase>
using Drawn = std::set<std::pair<Phase, Phase>>;

template <typename Phase>
void expect_life(const Drawn<Phase>& drawn) {
  const int last = static_cast<int>(monarch_enum_max(Phase{}));
  for (int before = 0; before <= last; ++before) {
    for (int next = 0; next <= last; ++next) {
      const std::pair step{static_cast<Phase>(before), static_cast<Phase>(next)};
      EXPECT_EQ(may_follow(step.first, step.second), drawn.contains(step)) << before << " to " << next;
    }
  }
}

TEST(Lives, OfAJobGoOneWay) {
  using enum JobPhase;
  expect_life<JobPhase>({{kNew, kStarting},
                         {kNew, kStopping},
                         {kStarting, kRunning},
                         {kStarting, kStopping},
                         {kRunning, kStopping},
                         {kStopping, kDraining},
                         {kDraining, kShuttingDown},
                         {kShuttingDown, kEnded}});
}

TEST(Lives, OfAHostLeadFromOneWorkerToTheNext) {
  using enum HostPhase;
  expect_life<HostPhase>({{kCold, kLaunching},
                          {kLaunching, kLaunched},
                          {kLaunching, kEnded},
                          {kLaunching, kDestroying},
                          {kLaunched, kJoined},
                          {kLaunched, kEnded},
                          {kLaunched, kDestroying},
                          {kJoined, kEnded},
                          {kJoined, kDestroying},
                          {kDestroying, kDestroying},
                          {kDestroying, kEnded},
                          {kDestroying, kLost},
                          {kLost, kEnded},
                          {kLost, kCold},
                          {kEnded, kCold}});
}

TEST(Lives, OfAGangLeadFromItsWaitToItsEnd) {
  using enum GangPhase;
  expect_life<GangPhase>(
      {{kWaiting, kReserving}, {kWaiting, kParked},     {kWaiting, kStopped},   {kWaiting, kFailed},
       {kReserving, kWaiting}, {kReserving, kStarting}, {kReserving, kFailing}, {kReserving, kFailed},
       {kReserving, kParked},  {kReserving, kStopped},  {kStarting, kRunning},  {kStarting, kFailing},
       {kStarting, kStopping}, {kRunning, kDone},       {kRunning, kFailing},   {kRunning, kFailed},
       {kRunning, kStopping},  {kFailing, kWaiting},    {kFailing, kFailed},    {kStopping, kWaiting},
       {kStopping, kStopped},  {kFailed, kWaiting},     {kParked, kWaiting},    {kParked, kStopped},
       {kIdle, kWaiting},      {kIdle, kStopped},       {kWaiting, kIdle},      {kReserving, kIdle},
       {kFailing, kIdle},      {kStopping, kIdle},      {kDone, kIdle},         {kFailed, kIdle}});
}

TEST(Lives, OfARankAreOneProcessEach) {
  using enum RankStage;
  expect_life<RankStage>({{kPending, kStarting},
                          {kStarting, kRunning},
                          {kStarting, kStopping},
                          {kStarting, kEnded},
                          {kStarting, kLost},
                          {kRunning, kStopping},
                          {kRunning, kEnded},
                          {kRunning, kLost},
                          {kStopping, kStopping},
                          {kStopping, kEnded},
                          {kStopping, kLost},
                          {kLost, kEnded}});
}

TEST(Lives, OfACrewComeBackToItsWait) {
  using enum CrewPhase;
  expect_life<CrewPhase>({{kWaiting, kReserving},
                          {kReserving, kStarting},
                          {kReserving, kStopping},
                          {kStarting, kRunning},
                          {kStarting, kStopping},
                          {kStarting, kOver},
                          {kRunning, kStopping},
                          {kRunning, kOver},
                          {kStopping, kStopping},
                          {kStopping, kOver},
                          {kOver, kReserving},
                          {kWaiting, kWaiting},
                          {kReserving, kWaiting},
                          {kStarting, kWaiting},
                          {kRunning, kWaiting},
                          {kStopping, kWaiting},
                          {kOver, kWaiting}});
}

TEST(Lives, GoOnByOneStep) {
  HostState host;
  to(host, HostPhase::kLaunching);
  EXPECT_EQ(host.phase, HostPhase::kLaunching);
  to(host, HostPhase::kLaunched);
  EXPECT_EQ(host.phase, HostPhase::kLaunched);
}

TEST(LivesDeathTest, RefuseWhatIsNoStep) {
  HostState host;
  to(host, HostPhase::kLaunching);
  to(host, HostPhase::kEnded);
  EXPECT_DEATH(to(host, HostPhase::kLaunching), "I19");
  JobState job;
  EXPECT_DEATH(to(job, JobPhase::kRunning), "in their order");
  GangState gang;
  EXPECT_DEATH(to(gang, GangPhase::kRunning), "from its wait to its end");
  CrewMember rank;
  EXPECT_DEATH(to(rank, RankStage::kRunning), "one process at a time");
  Crew crew;
  EXPECT_DEATH(to(crew, CrewPhase::kRunning), "a crew has one life at a time");
}

}  // namespace
}  // namespace monarch
