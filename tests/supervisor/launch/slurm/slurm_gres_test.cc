#include "supervisor/launch/slurm/slurm_gres.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace monarch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// As slurmctld 22.05 writes it, here without most of its lines.
constexpr char kUneven[] = R"(JobId=4 JobName=no-shell
   NodeList=h[1-2]
   NumNodes=2 NumCPUs=2 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   JOB_GRES=gpu:3
     Nodes=h1 CPU_IDs=0 Mem=0 GRES=gpu:2(IDX:0-1)
     Nodes=h2 CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:0)
   TresPerJob=gres:gpu:3
)";

JobGres read(const std::string& gres) {
  const auto job = read_job_gres("JobId=4 JobName=x\n     Nodes=h[1-2] CPU_IDs=0 Mem=0 GRES=" + gres + "\n", 4);
  EXPECT_TRUE(job.ok()) << gres << ": " << job.error().message;
  return job.ok() ? *job : JobGres();
}

TEST(SlurmGres, AskForTheDetailsOfTheJob) {
  EXPECT_THAT(job_detail_query(7, {"PATH=/bin"}),
              ElementsAre("/usr/bin/env", "-i", "PATH=/bin", "scontrol", "--details", "show", "job", "7"));
}

TEST(SlurmGres, ReadWhatEachNodeHas) {
  const auto job = read_job_gres(kUneven, 4);
  ASSERT_TRUE(job.ok());
  EXPECT_THAT(*job, ElementsAre(Pair("h1", ElementsAre(Pair("gpu", 2U))), Pair("h2", ElementsAre(Pair("gpu", 1U)))));
  EXPECT_THAT(gres_options(*job, "h1"), ElementsAre("--gpus=2"));
  EXPECT_THAT(gres_options(*job, "h2"), ElementsAre("--gpus=1"));
}

TEST(SlurmGres, TakeAllTypesTogether) {
  const JobGres job = read("gpu:a100:3(IDX:0,2-3),gpu:v100:1(IDX:1)");
  EXPECT_THAT(gres_options(job, "h2"), ElementsAre("--gpus=4"));
  EXPECT_THAT(gres_options(read("gpu:a100:1(IDX:0),gpu:v100:0(IDX:)"), "h1"), ElementsAre("--gpus=1"));
}

TEST(SlurmGres, KeepWhatElseTheJobHas) {
  EXPECT_THAT(gres_options(read("gpu:2(IDX:0-1),nic(CNT:1)"), "h1"), ElementsAre("--gres=nic:1", "--gpus=2"));
}

TEST(SlurmGres, AskForNothingWhereTheJobHasNoGpus) {
  EXPECT_THAT(gres_options(read(""), "h1"), IsEmpty());
  EXPECT_THAT(gres_options(read("nic(CNT:1)"), "h1"), IsEmpty());
}

TEST(SlurmGres, AskForNoneOnANodeWithoutTheGpusOfTheOthers) {
  const auto job =
      read_job_gres("JobId=4\n  Nodes=h1 CPU_IDs=0 Mem=0 GRES=gpu:2(IDX:0-1)\n  Nodes=h2 CPU_IDs=0 Mem=0 GRES=\n", 4);
  ASSERT_TRUE(job.ok());
  EXPECT_THAT(gres_options(*job, "h2"), ElementsAre("--gres=none"));
  EXPECT_THAT(gres_options(*job, "h3"), ElementsAre("--gres=none"));
}

TEST(SlurmGres, OfAStepOnManyNodesAreThoseThatAllOfThemHave) {
  const auto job = read_job_gres(
      "JobId=4\n Nodes=h[1-2] GRES=gpu:2(IDX:0-1)\n Nodes=h3 GRES=gpu:1(IDX:0)\n Nodes=h4 "
      "GRES=gpu:1(IDX:0),nic(CNT:1)\n"
      " Nodes=h5 GRES=\n",
      4);
  ASSERT_TRUE(job.ok());
  EXPECT_THAT(*shared_gres_options(*job, {"h1", "h2"}), ElementsAre("--gpus-per-node=2"));
  EXPECT_THAT(*shared_gres_options(*job, {"h4"}), ElementsAre("--gres=nic:1", "--gpus-per-node=1"));
  EXPECT_FALSE(shared_gres_options(*job, {"h1", "h2", "h3"}).has_value());
  EXPECT_FALSE(shared_gres_options(*job, {"h3", "h4"}).has_value()) << "nic is of each node";
  EXPECT_FALSE(shared_gres_options(*job, {"h3", "h5"}).has_value());
  EXPECT_THAT(*shared_gres_options(*job, {"h5", "h6"}), ElementsAre("--gres=none"));
  EXPECT_THAT(*shared_gres_options(read(""), {"h1", "h2"}), IsEmpty());
}

TEST(SlurmGres, AreThoseOfTheJobAndOfNoOtherTaskOfItsArray) {
  const auto job = read_job_gres(
      "JobId=9 ArrayJobId=9 ArrayTaskId=2 JobName=x\n     Nodes=h1 GRES=gpu:1(IDX:0)\n\n"
      "JobId=7 ArrayJobId=9 ArrayTaskId=0 JobName=x\n     Nodes=h1 GRES=gpu:4(IDX:1-4)\n",
      9);
  ASSERT_TRUE(job.ok());
  EXPECT_THAT(gres_options(*job, "h1"), ElementsAre("--gpus=1"));
}

TEST(SlurmGres, AreNotReadFromWhatSaysSomethingElse) {
  EXPECT_FALSE(read_job_gres("", 4).ok());
  EXPECT_FALSE(read_job_gres("JobId=4 JobName=no-shell\n", 4).ok());
  for (const char* gres : {"gpu", "gpu:2", "gpu:(IDX:0)", "gpu:x(IDX:0)", "gpu:-1(IDX:0)", "gpu:2(SEEN:0)", "gpu(CNT:)",
                           ":2(IDX:0)", "gp;u:2(IDX:0)", "gpu:99999999999(IDX:0)", "gpu:2(IDX:0-1", ",gpu:2(IDX:0)",
                           "gpu(CNT:4294967295),gpu(CNT:1)"}) {
    EXPECT_FALSE(read_job_gres("JobId=4\nNodes=h1 GRES=" + std::string(gres) + "\n", 4).ok()) << gres;
  }
  EXPECT_FALSE(read_job_gres("JobId=4\nNodes=h[1- GRES=gpu:2(IDX:0-1)\n", 4).ok());
}

}  // namespace
}  // namespace monarch
