#include "supervisor/launch/slurm/slurm_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace monarch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Not;

Words environment_of(const std::map<std::string, std::string>& variables) {
  return slurm_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(SlurmCommands, GiveAStepWhoItsUserIsAndNothingThatIsAnOption) {
  EXPECT_THAT(environment_of({{"HOME", "/home/a"},
                              {"PATH", "/bin"},
                              {"SLURM_JOB_ID", "7"},
                              {"SLURM_NTASKS_PER_NODE", "8"},
                              {"SECRET_TOKEN", "x"},
                              {"SLURM_CONF", "/etc/slurm/other.conf"}}),
              ElementsAre("HOME=/home/a", "PATH=/bin", "SLURM_CONF=/etc/slurm/other.conf"));
}

TEST(SlurmCommands, AlwaysHaveAPath) {
  EXPECT_THAT(environment_of({}), ElementsAre("PATH=/usr/local/bin:/usr/bin:/bin"));
}

TEST(SlurmCommands, StartOneProcessOnOneNodeThatEndsWithNobodyElse) {
  const Words words = step_command({.job = 7,
                                    .nodes = {"h2"},
                                    .name = "demo-1a2b.h2",
                                    .environment = {"PATH=/bin"},
                                    .program = {"/bin/sh", "-c", "true"}});
  EXPECT_THAT(Words(words.begin(), words.begin() + 4), ElementsAre("/usr/bin/env", "-i", "PATH=/bin", "srun"));
  EXPECT_THAT(words, IsSupersetOf({"--jobid=7", "--overlap", "--nodes=1", "--ntasks=1", "--nodelist=h2",
                                   "--job-name=demo-1a2b.h2", "--no-kill", "--kill-on-bad-exit=0", "--wait=0"}));
  EXPECT_THAT(Words(words.end() - 3, words.end()), ElementsAre("/bin/sh", "-c", "true"));
}

TEST(SlurmCommands, StartAStepOnManyNodesWhoseLinesStayWhole) {
  const Words words = step_command({.job = 7,
                                    .nodes = {"h2", "h4", "h5"},
                                    .name = shared_step_name("demo-1a2b", Term(3), 1),
                                    .environment = {"PATH=/bin"},
                                    .program = {"true"}});
  EXPECT_THAT(words, IsSupersetOf({"--nodes=3", "--ntasks=3", "--ntasks-per-node=1", "--nodelist=h2,h4,h5",
                                   "--job-name=demo-1a2b.+3.1", "--no-kill", "--kill-on-bad-exit=0", "--wait=0"}));
  EXPECT_THAT(words, Not(Contains("--unbuffered")));
}

TEST(SlurmCommands, CallTheStepsOfANodeByItsName) {
  EXPECT_EQ(worker_step_name("demo-1a2b", "h2"), "demo-1a2b.h2");
  EXPECT_NE(worker_step_name("demo-1a2b", "h2"), end_step_name("demo-1a2b", "h2"));
}

TEST(SlurmCommands, ReadStepsLineByLine) {
  const auto steps = read_steps("7.0|demo-1a2b.h1\n7.batch|batch\n\n7.12|a|b\n");
  ASSERT_TRUE(steps.ok());
  ASSERT_EQ(steps->size(), 3U);
  EXPECT_EQ((*steps)[0].id, "7.0");
  EXPECT_EQ((*steps)[0].name, "demo-1a2b.h1");
  EXPECT_EQ((*steps)[2].name, "a|b");
  EXPECT_TRUE(read_steps("")->empty());
  EXPECT_FALSE(read_steps("slurm is down\n").ok());
}

SlurmJobState state_of(const std::string& word) { return read_job_state("7|" + word + "|None\n", 7).state; }

TEST(SlurmCommands, KnowEachStateOfAJob) {
  for (const char* state : {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
                            "PREEMPTED", "REVOKED", "TIMEOUT"}) {
    EXPECT_EQ(state_of(state), SlurmJobState::kEnded) << state;
  }
  for (const char* state : {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"}) {
    EXPECT_EQ(state_of(state), SlurmJobState::kWaiting) << state;
  }
  for (const char* state : {"RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING"}) {
    EXPECT_EQ(state_of(state), SlurmJobState::kRunning) << state;
  }
  EXPECT_EQ(state_of("COMPLETING"), SlurmJobState::kEnding);
  EXPECT_EQ(state_of("STAGE_OUT"), SlurmJobState::kEnding);
  EXPECT_EQ(state_of("SOMETHING_NEW"), SlurmJobState::kUnknown);
  EXPECT_EQ(read_job_state("\n", 7).state, SlurmJobState::kUnknown) << "of a job that it does not know it says so";
}

TEST(SlurmCommands, TakeOfAnArrayTheTaskThatHasTheNumber) {
  const SlurmJobWord word = read_job_state("9|RUNNING|None\n17|COMPLETED|None\n7|TIMEOUT|TimeLimit\n", 7);
  EXPECT_EQ(word.state, SlurmJobState::kEnded);
  EXPECT_EQ(word.word, "TIMEOUT");
}

TEST(SlurmCommands, KnowThatTheTimeIsOverWhileAJobIsEnding) {
  EXPECT_EQ(read_job_state("7|COMPLETING|TimeLimit\n", 7).word, "TIMEOUT");
  EXPECT_EQ(read_job_state("7|COMPLETING|None\n", 7).word, "COMPLETING");
}

TEST(SlurmCommands, TakeNoWordOfANodeThatDoesNotAnswer) {
  for (const char* state : {"idle\n", "allocated", "mixed\n", "completing"}) {
    EXPECT_TRUE(node_answers(state)) << state;
  }
  for (const char* state : {"down*\n", "down\n", "idle*", "allocated*\n", "unknown", "", "draining", "drained\n",
                            "inval", "fail", "reboot"}) {
    EXPECT_FALSE(node_answers(state)) << state;
  }
}

}  // namespace
}  // namespace monarch
