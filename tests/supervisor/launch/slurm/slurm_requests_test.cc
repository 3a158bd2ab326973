#include "supervisor/launch/slurm/slurm_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "supervisor/launch/slurm/slurm_spec.h"
#include "supervisor/launch/slurm/slurm_watch.h"

namespace monarch {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kUuid[] = "0123456789abcdef0123456789abcdef";

// What scontrol of Slurm 22.05 writes.
constexpr char kFacts[] =
    "JobId=7 JobName=job.sh\n"
    "   UserId=root(0) GroupId=root(0) MCS_label=N/A\n"
    "   Priority=4294901759 Nice=0 Account=physics QOS=(null)\n"
    "   JobState=RUNNING Reason=None Dependency=(null)\n"
    "   RunTime=1-00:30:00 TimeLimit=2-00:00:00 TimeMin=N/A\n"
    "   Partition=main AllocNode:Sid=login:0\n"
    "   NumNodes=3 NumCPUs=12 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:*\n"
    "   JOB_GRES=gpu:6\n"
    "     Nodes=h[1-2] CPU_IDs=0-3,8 Mem=2048 GRES=gpu:a100:2(IDX:0-1)\n"
    "     Nodes=h3 CPU_IDs=0 Mem=1024 GRES=\n"
    "   Features=ib DelayBoot=00:00:00 Reservation=tests\n"
    "   OverSubscribe=NO Contiguous=0 Licenses=(null) Network=(null)\n";

NodeOrder order_of(const SlurmRequest& wish, const SlurmJobFacts& like = {}) {
  return {.token = {.uuid = kUuid, .host = HostId(4), .term = 2, .number = 1},
          .name = "demo-1a2b",
          .wish = wish,
          .like = like,
          .exclude = {"h1", "h2"},
          .environment = {"PATH=/bin"}};
}

TEST(SlurmJobFacts, SayWhatANodeOfTheJobIs) {
  const auto facts = read_job_facts(kFacts, 7);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->state, "RUNNING");
  EXPECT_EQ(facts->partition, "main");
  EXPECT_EQ(facts->account, "physics");
  EXPECT_EQ(facts->qos, "");
  EXPECT_EQ(facts->features, "ib");
  EXPECT_EQ(facts->reservation, "tests");
  EXPECT_TRUE(facts->exclusive);
  EXPECT_EQ(facts->cpus, 5U);
  EXPECT_EQ(facts->memory_mib, 2048U);
  EXPECT_EQ(facts->gres, "gpu:a100:2");
  EXPECT_EQ(facts->time_left, Duration::seconds(86'400 - 1'800));
}

TEST(SlurmJobFacts, AreThoseOfTheJobAmongTheTasksOfItsArray) {
  const auto facts = read_job_facts(
      "JobId=9 JobName=a\n   Partition=other \n\n" + std::string(kFacts) + "\nJobId=8 JobName=b\n   QOS=high\n", 7);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->partition, "main");
  EXPECT_EQ(facts->qos, "");
}

TEST(SlurmJobFacts, AreNoneWhereTheAnswerIsAboutSomethingElse) {
  EXPECT_FALSE(read_job_facts(kFacts, 70).ok());
  EXPECT_FALSE(read_job_facts("", 7).ok());
  EXPECT_FALSE(read_job_facts("slurm_load_jobs error: Invalid job id specified\n", 7).ok());
  const auto bare = read_job_facts("JobId=7", 7);
  ASSERT_TRUE(bare.ok());
  EXPECT_EQ(bare->cpus, 0U);
  EXPECT_FALSE(bare->time_left.has_value());
}

TEST(SlurmJobFacts, TakeNoNumberThatIsNone) {
  for (const char* ids : {"0-", "3-1", "x", "0-99999999999999999999", "0-4000000000", ""}) {
    const auto facts = read_job_facts("JobId=7\n     Nodes=h1 CPU_IDs=" + std::string(ids) + " Mem=-1 GRES=\n", 7);
    ASSERT_TRUE(facts.ok()) << ids;
    EXPECT_LE(facts->cpus, 1U) << ids;
    EXPECT_EQ(facts->memory_mib, 0U) << ids;
  }
  for (const char* limit :
       {"UNLIMITED", "Partition_Limit", "-1", "1-", "99999999-00:00:00", "1:2:3:4:5:6:7:8:9999:9999"}) {
    const auto facts = read_job_facts("JobId=7\nRunTime=00:00:01 TimeLimit=" + std::string(limit) + "\n", 7);
    ASSERT_TRUE(facts.ok()) << limit;
    EXPECT_LE(facts->time_left.value_or(Duration::zero()), Duration::seconds(36'500LL * 86'400)) << limit;
  }
}

TEST(SlurmRequests, AskForOneNodeLikeTheOthers) {
  const Words words = node_request_command(order_of({}, *read_job_facts(kFacts, 7)));
  EXPECT_THAT(words, IsSupersetOf({"sbatch", "--parsable", "--no-requeue", "--nodes=1", "--ntasks=1",
                                   "--partition=main", "--account=physics", "--constraint=ib", "--reservation=tests",
                                   "--exclusive", "--cpus-per-task=5", "--mem=2048M", "--gres=gpu:a100:2",
                                   "--time=1410", "--exclude=h1,h2", "--job-name=demo-1a2b"}));
  EXPECT_THAT(words, Not(Contains(StartsWith("--qos"))));
}

TEST(SlurmRequests, PreferWhatTheSpecSays) {
  const Words words = node_request_command(order_of({.partition = "gpu",
                                                     .account = "a",
                                                     .qos = "q",
                                                     .time = Duration::milliseconds(3'600'001),
                                                     .constraint = "new",
                                                     .exclude = {"bad07"},
                                                     .options = {"--mail-type=FAIL", "--nodes=9"}},
                                                    *read_job_facts(kFacts, 7)));
  EXPECT_THAT(words, IsSupersetOf({"--partition=gpu", "--account=a", "--qos=q", "--constraint=new", "--time=61",
                                   "--exclude=bad07,h1,h2", "--mail-type=FAIL"}));
  const auto at = [&](const char* word) { return std::find(words.begin(), words.end(), word) - words.begin(); };
  EXPECT_LT(at("--nodes=9"), at("--nodes=1")) << "the last one counts";
}

TEST(SlurmRequests, AreFoundByTheirToken) {
  const RequestToken token{.uuid = kUuid, .host = HostId(4), .term = 2, .number = 1};
  EXPECT_EQ(read_token(to_text(token)), token);
  EXPECT_EQ(read_token(to_text(token) + " "), token) << "scontrol writes a blank behind it";
  for (const char* other : {"", "monarch", "monarch x", "monarch x 4", "monarch x 4 2", "monarch x 4 2.",
                            "monarch x 4 2.1 more", "monarch x -4 2.1", "mine"}) {
    EXPECT_FALSE(read_token(other).has_value()) << other;
  }
  const std::string comment = to_text(token);
  const auto jobs = read_requests("12|PENDING|Resources||" + comment + "\n13|RUNNING|None|h3|monarch other 4 2.1\n" +
                                      "14|RUNNING|None|h4|(null)\nnonsense\n15|RUNNING|None|h5|" + comment + "\n",
                                  kUuid);
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].job, 12U);
  EXPECT_EQ(jobs[0].state, SlurmJobState::kWaiting);
  EXPECT_EQ(jobs[0].reason, "Resources");
  EXPECT_EQ(jobs[1].nodes, "h5");
  EXPECT_EQ(jobs[1].state, SlurmJobState::kRunning);
}

TEST(SlurmRequests, ReadTheNumberThatSbatchSays) {
  EXPECT_EQ(*read_submitted("12\n"), 12U);
  EXPECT_EQ(*read_submitted("12;cluster\n"), 12U);
  for (const char* other : {"", "x", "0", "12 13", "Submitted batch job 12"})
    EXPECT_FALSE(read_submitted(other).ok()) << other;
}

TEST(SlurmRequests, TellARefusalFromAControllerThatIsAway) {
  for (const char* refused :
       {"sbatch: error: Batch job submission failed: Requested node configuration is not available",
        "sbatch: error: Batch job submission failed: Invalid partition name specified"}) {
    EXPECT_TRUE(is_refusal(refused)) << refused;
  }
  for (const char* away :
       {"sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        "sbatch did not answer within 10s", "sbatch: error: Munge encode failed: Failed to access \"munge.socket\"",
        "sbatch: error: slurm_receive_msg: Zero Bytes were transmitted or received"}) {
    EXPECT_FALSE(is_refusal(away)) << away;
  }
}

TEST(SlurmRequests, AreHeldByAScriptThatLooksForTheJobsWorkers) {
  EXPECT_THAT(holding_script(kUuid), HasSubstr(std::string("[-]-job ") + kUuid));
}

TEST(SlurmWatch, TellsNodesThatAreDownOrDrainFromThoseThatAreWell) {
  const auto nodes = read_nodes(
      "h1|allocated|none\nh2|down*|Not responding\nh3|draining|bad fan\nh4|idle|none\n"
      "h5|drained*|x|y\nh6|mixed|none\nh7|failing|z\n\nnonsense\n");
  ASSERT_EQ(nodes.size(), 7U);
  EXPECT_EQ(nodes.at("h1").sight, NodeSight::kWell);
  EXPECT_EQ(nodes.at("h2").sight, NodeSight::kDown);
  EXPECT_EQ(nodes.at("h2").words, "down*: Not responding");
  EXPECT_EQ(nodes.at("h3").sight, NodeSight::kDraining);
  EXPECT_EQ(nodes.at("h5").words, "drained*: x|y");
  EXPECT_EQ(nodes.at("h6").sight, NodeSight::kWell);
  EXPECT_EQ(nodes.at("h7").sight, NodeSight::kDraining);
}

TEST(SlurmCommands, TellAJobThatWasTakenFromOneThatWasCancelled) {
  for (const char* word : {"", "TIMEOUT", "PREEMPTED", "NODE_FAIL", "PENDING", "BOOT_FAIL"})
    EXPECT_TRUE(was_taken(word)) << word;
  for (const char* word : {"CANCELLED", "COMPLETED", "FAILED", "COMPLETING"}) EXPECT_FALSE(was_taken(word)) << word;
}

}  // namespace
}  // namespace monarch
