#include "supervisor/launch/slurm/job_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace monarch {
namespace {

using ::testing::ElementsAre;

// As scontrol of 22.05.8 writes it; the user's own words try to be taken for Slurm's.
std::string shown(const std::string& state, const std::string& end, const std::string& preempted,
                  const std::string& reason = "None") {
  return "JobId=7 JobName=x EndTime=5 UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=4294901759 JobState=" +
         state + " Reason=" + reason +
         " Dependency=(null) Requeue=1 RunTime=00:00:03 TimeLimit=00:10:00 StartTime=1795408701 EndTime=" + end +
         " Deadline=N/A PreemptEligibleTime=1795408701 PreemptTime=" + preempted +
         " SuspendTime=None Partition=low Command=/home/a/b PreemptTime=1 EndTime=6 WorkDir=/ JobState=FAILED\n";
}

TEST(JobEnd, IsAskedInSecondsSinceTheEpoch) {
  EXPECT_THAT(job_end_query(7, {"PATH=/bin"}), ElementsAre("/usr/bin/env", "-i", "PATH=/bin", "SLURM_TIME_FORMAT=%s",
                                                           "scontrol", "--oneliner", "show", "job", "7"));
}

TEST(JobEnd, OfAJobThatRunsIsItsTimeLimits) {
  const JobEnd seen = read_job_end(shown("RUNNING", "1795409301", "None"), 7);
  EXPECT_EQ(seen.state, SlurmJobState::kRunning);
  EXPECT_EQ(seen.start, 1'795'408'701);
  EXPECT_EQ(seen.end, 1'795'409'301);
  EXPECT_FALSE(seen.preempted || seen.time_is_up);
}

TEST(JobEnd, IsSoonerOfAJobThatIsPreempted) {
  const JobEnd seen = read_job_end(shown("RUNNING", "1795408711", "1795408703"), 7);
  EXPECT_TRUE(seen.preempted);
  EXPECT_EQ(seen.end, 1'795'408'711);
}

TEST(JobEnd, SaysThatTheTimeIsUpBehindCompleting) {
  const JobEnd seen = read_job_end(shown("COMPLETING", "1795408820", "None", "TimeLimit"), 7);
  EXPECT_EQ(seen.state, SlurmJobState::kEnding);
  EXPECT_TRUE(seen.time_is_up);
}

TEST(JobEnd, IsNoneWithoutATimeLimitAndOfAnotherJob) {
  EXPECT_EQ(read_job_end(shown("RUNNING", "Unknown", "None"), 7).end, std::nullopt);
  EXPECT_EQ(read_job_end(shown("RUNNING", "1795409301", "None"), 70).state, SlurmJobState::kUnknown);
  EXPECT_EQ(read_job_end("", 7).state, SlurmJobState::kUnknown);
  EXPECT_EQ(read_job_end("JobId=7 ", 7).state, SlurmJobState::kUnknown);
  EXPECT_EQ(read_job_end(shown("RUNNING", "99999999999999999999", "None"), 7).end, std::nullopt);
}

TEST(JobEnd, IsTakenOfItsOwnLineOfAnArray) {
  const std::string other = "JobId=8 JobState=PENDING Reason=None StartTime=1 EndTime=2 PreemptTime=None \n\n";
  EXPECT_EQ(read_job_end(other + shown("RUNNING", "1795409301", "None"), 7).end, 1'795'409'301);
}

TEST(KillWait, IsWhatTheConfigurationSays) {
  EXPECT_EQ(read_kill_wait("Configuration data as of 2026\nKeepAliveTime  = SYSTEM_DEFAULT\n"
                           "KillOnBadExit           = 0\nKillWait                = 5 sec\n"),
            Duration::seconds(5));
  EXPECT_EQ(read_kill_wait("KillWait                = none\n"), std::nullopt);
  EXPECT_EQ(read_kill_wait(""), std::nullopt);
}

TEST(Warning, OfAShortJobIsATenthOfItsTime) {
  EXPECT_EQ(warning_of(Duration::seconds(120), std::nullopt), Duration::seconds(120));
  EXPECT_EQ(warning_of(Duration::seconds(120), Duration::seconds(240)), Duration::seconds(120));
  EXPECT_EQ(warning_of(Duration::seconds(120), Duration::seconds(200)), Duration::seconds(20));
}

}  // namespace
}  // namespace monarch
