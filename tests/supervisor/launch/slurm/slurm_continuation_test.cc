#include "supervisor/launch/slurm/slurm_continuation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/supervisor/launch/slurm/guarded_calls.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// In the place of Slurm's commands are scripts of this test's: each notes how it was called, and does what the test
// gave it to do.
class GoingOn : public GuardedCallsTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    std::string pattern = (fs::temp_directory_path() / "going-on-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = ::getenv("PATH");
    ASSERT_EQ(::setenv("PATH", text(folder_, ":/usr/bin:/bin").c_str(), 1), 0);
    open_calls();
  }
  void TearDown() override {
    going_on_.reset();
    calls_.reset();
    ASSERT_EQ(::setenv("PATH", path_.c_str(), 1), 0);
    fs::remove_all(folder_);
  }

  // `does`: shell, with the number of calls of this command so far, from 1, in $n.
  void command(const std::string& name, const std::string& does) {
    const std::string path = text(folder_, "/", name);
    std::ofstream(path) << "#!/bin/sh\necho \"" << name << " $*\" >> " << folder_ << "/calls\n"
                        << "n=$(grep -c '^" << name << "' " << folder_ << "/calls)\n"
                        << does << "\n";
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
  std::string calls() const {
    std::ifstream file(folder_ + "/calls");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Result<std::uint32_t> ask(OnPreempt how, Duration patience = Duration::seconds(30), bool again = false) {
    going_on_ = std::make_unique<SlurmContinuation>(
        loop(), *calls_,
        SlurmContinuationOptions{
            .how = how,
            .slurm_job = 7,
            .order = {.job_id = "hello-3fa2", .directory = folder_, .again = again, .until = loop().now() + patience},
            .environment = {text("PATH=", folder_, ":/usr/bin:/bin")},
            .variables = {"SLURM_NNODES"}},
        [this](Result<std::uint32_t> told) { told_ = std::move(told); });
    going_on_->ask();
    EXPECT_FALSE(told_) << "not within the call";
    EXPECT_TRUE(run_until([this] { return told_.has_value(); }));
    return told_.value_or(Error{});
  }

  std::string folder_;
  std::string path_;
  std::unique_ptr<SlurmContinuation> going_on_;
  std::optional<Result<std::uint32_t>> told_;
};

TEST_F(GoingOn, ByARequeueMarksTheJobFirst) {
  command("scontrol", "exit 0");
  EXPECT_EQ(ask(OnPreempt::kRequeue).value(), 7U);
  EXPECT_EQ(calls(), "scontrol update JobId=7 Requeue=1 Comment=monarch job hello-3fa2\nscontrol requeue 7\n");
}

TEST_F(GoingOn, RequeuesAJobThatMayNotBeMarked) {
  command("scontrol", "[ $1 = requeue ] || { echo 'slurm_update error: Access/permission denied' >&2; exit 1; }");
  EXPECT_EQ(ask(OnPreempt::kRequeue).value(), 7U);
}

TEST_F(GoingOn, TellsARefusal) {
  command("squeue", "echo '7|RUNNING|None|x|h1'");
  command("scontrol", "echo 'Requested operation is presently disabled for job 7' >&2; exit 1");
  const auto told = ask(OnPreempt::kRequeue);
  ASSERT_FALSE(told.ok());
  EXPECT_THAT(told.error().message, HasSubstr("presently disabled"));
  EXPECT_EQ(calls().find("scontrol requeue"), calls().rfind("scontrol requeue")) << "once";
}

TEST_F(GoingOn, TakesForDoneWhatSlurmHasDoneAtALostWordOrByItself) {
  command("scontrol", "[ $n -gt 2 ] && echo 'Job is pending execution' >&2 || echo 'Socket timed out' >&2; exit 1");
  for (const char* state : {"PENDING", "COMPLETING", "REQUEUED"}) {
    command("squeue", text("echo '7|", state, "|None|x|h1'"));
    told_.reset();
    EXPECT_EQ(ask(OnPreempt::kRequeue).value(), 7U) << state;
  }
}

TEST_F(GoingOn, LooksForASuccessorOfTheSupervisorBefore) {
  command("sbatch", "echo 12");
  command("squeue", "echo '11|PENDING|Priority||x|hello|monarch job hello-3fa2'");
  EXPECT_EQ(ask(OnPreempt::kSuccessor, Duration::seconds(30), true).value(), 11U);
  EXPECT_EQ(calls().find("sbatch"), std::string::npos);
}

TEST_F(GoingOn, AsksAControllerThatDoesNotAnswerAgain) {
  command("scontrol", "[ $n -gt 2 ] || { echo 'Unable to contact slurm controller' >&2; exit 1; }");
  EXPECT_EQ(ask(OnPreempt::kRequeue).value(), 7U);
}

TEST_F(GoingOn, GivesUpOnOneThatNeverAnswers) {
  command("scontrol", "echo 'Unable to contact slurm controller' >&2; exit 1");
  const auto told = ask(OnPreempt::kRequeue, Duration::milliseconds(1));
  ASSERT_FALSE(told.ok());
  EXPECT_THAT(told.error().message, HasSubstr("Unable to contact"));
  EXPECT_EQ(told.error().code, ErrorCode::kTimeout) << "which is no refusal";
}

TEST_F(GoingOn, SubmitsASuccessor) {
  command("sbatch", "echo 12");
  EXPECT_EQ(ask(OnPreempt::kSuccessor).value(), 12U);
  EXPECT_THAT(calls(), StartsWith("sbatch --parsable"));
  EXPECT_THAT(calls(), HasSubstr("--comment=monarch job hello-3fa2"));
}

TEST_F(GoingOn, LooksForASuccessorOfWhichNoAnswerCame) {
  command("sbatch", "echo 'Socket timed out on send/recv operation' >&2; exit 1");
  command("squeue", "echo '12|PENDING|Priority||x|hello|monarch job hello-3fa2'");
  EXPECT_EQ(ask(OnPreempt::kSuccessor).value(), 12U);
  EXPECT_EQ(calls().find("sbatch"), calls().rfind("sbatch --parsable")) << "submitted once: " << calls();
}

TEST_F(GoingOn, SubmitsASuccessorAgainThatSlurmDoesNotHave) {
  command("sbatch", "[ $n = 2 ] && echo 13 || { echo 'Socket timed out on send/recv operation' >&2; exit 1; }");
  command("squeue", "echo '12|PENDING|Priority||x|hello|monarch job hello-0000'");
  EXPECT_EQ(ask(OnPreempt::kSuccessor).value(), 13U);
}

}  // namespace
}  // namespace monarch
