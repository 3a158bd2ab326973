#include "supervisor/launch/slurm/submission.h"

#include <gtest/gtest.h>

#include "supervisor/spec/spec.h"

namespace monarch {
namespace {

JobSpec job_of(const std::string& slurm, const std::string& more = "") {
  const std::string words = "version: 1\njob: hello\nlaunch:\n  slurm: " + slurm +
                            "\nmeshes:\n  m:\n    dims: {host: 3, slot: 2}\n    program: [hostname]\n" + more;
  const SpecOutcome outcome = load_spec({.name = "hello.yaml", .text = words, .directory = "/home/u/hello"}, {});
  EXPECT_TRUE(outcome.loaded.has_value()) << render(outcome, {});
  return outcome.loaded->spec;
}

const SubmissionOrder kOrder{
    .spec = "version: 1\njob: hello\n", .directory = "/home/u/hello", .monarch = "/opt/m/bin/monarch"};

std::string script_of(const std::string& slurm, const SubmissionOrder& order = kOrder, const std::string& more = "") {
  const auto script = submission_script(job_of(slurm, more), order);
  EXPECT_TRUE(script.ok()) << script.error().message;
  return script.ok() ? *script : "";
}

TEST(Submission, AsksForWhatTheJobNeedsAndHasTheSpecInIt) {
  EXPECT_EQ(script_of("{spares: 1}"),
            "#!/bin/bash\n"
            "#SBATCH --job-name=hello\n"
            "#SBATCH --nodes=4\n"
            "#SBATCH --ntasks-per-node=1\n"
            "#SBATCH --no-kill\n"
            "#SBATCH --no-requeue\n"
            "#SBATCH --comment=monarch\n"
            "#SBATCH --exclusive\n"
            "#SBATCH --chdir=/home/u/hello\n"
            "export SLURM_NO_KILL=1\n"
            "exec /opt/m/bin/monarch run ${MONARCH_SUBMITTED:+--submitted \"$MONARCH_SUBMITTED\"} - <<'END_OF_SPEC'\n"
            "version: 1\n"
            "job: hello\n"
            "END_OF_SPEC\n");
}

TEST(Submission, HasWhatTheSpecWishesOfNodes) {
  const std::string script = script_of(
      "{nodes: 5, partition: gpu, account: a, qos: high, time: 90m, constraint: 'ib&a100', exclude: ['bad[07-08]'], "
      "options: ['--comment=two words', '--mail-user=\"x\"']}",
      kOrder, "    resources: {gpus: 2, cpus: 3}\n");
  for (const char* line :
       {"#SBATCH --nodes=5\n", "#SBATCH --partition=gpu\n", "#SBATCH --account=a\n", "#SBATCH --qos=high\n",
        "#SBATCH --time=90\n", "#SBATCH --constraint=ib&a100\n", "#SBATCH --exclude=bad[07-08]\n",
        "#SBATCH --gpus-per-node=4\n", "#SBATCH --cpus-per-task=6\n", "#SBATCH \"--comment=two words\"\n",
        "#SBATCH \"--mail-user=\\\"x\\\"\"\n"}) {
    EXPECT_NE(script.find(line), std::string::npos) << line << script;
  }
}

TEST(Submission, LeavesTheShareOfANodeToWhoeverSaysIt) {
  EXPECT_EQ(script_of("{options: [--oversubscribe]}").find("--exclusive"), std::string::npos);
  EXPECT_EQ(script_of("{options: [-c4]}").find("--exclusive"), std::string::npos);
  EXPECT_EQ(script_of("{}", kOrder, "    resources: {cpus: 1}\n").find("--exclusive"), std::string::npos);
}

TEST(Submission, RefusesOptionsThatMakeAnotherJobOfIt) {
  for (const char* option : {"--array=0-1", "-a0-1", "--clusters=far", "-Mfar", "--requeue", "--wait", "--wrap=true"}) {
    EXPECT_FALSE(submission_script(job_of(std::string("{options: ['") + option + "']}"), kOrder).ok()) << option;
  }
}

TEST(Submission, HasPlainLineEnds) {
  SubmissionOrder odd = kOrder;
  odd.spec = "version: 1\r\njob: hello\r\n";
  EXPECT_EQ(script_of("{}", odd).find('\r'), std::string::npos);
}

TEST(Submission, TakesNothingOfTheShellThatWouldBeAnOption) {
  const auto names = not_for_submitting(job_of("{partition: gpu, time: 10m}"));
  const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  EXPECT_TRUE(has("SBATCH_PARTITION") && has("SBATCH_TIMELIMIT") && has("SBATCH_ARRAY_INX"));
  EXPECT_FALSE(has("SBATCH_ACCOUNT"));
}

TEST(Submission, NeverEndsItsSpecEarly) {
  SubmissionOrder odd = kOrder;
  odd.spec = "END_OF_SPEC\nEND_OF_SPEC_\n$(touch x) `y` 'z'\n";
  odd.monarch = "/home/o'neil/monarch";
  const std::string script = script_of("{}", odd);
  EXPECT_NE(script.find("<<'END_OF_SPEC__'\n" + odd.spec + "END_OF_SPEC__\n"), std::string::npos) << script;
}

TEST(Submission, RefusesWhatNoLineOfAScriptHolds) {
  const auto script = submission_script(job_of("{options: [\"--comment=a\\n#SBATCH --nodes=100\"]}"), kOrder);
  ASSERT_FALSE(script.ok());
  EXPECT_EQ(script.error().code, ErrorCode::kInvalid);
}

TEST(Submission, SaysWhoseItIsOnTheCommandLine) {
  const auto words = submit_command("hello-3fa2", "/s/jobs/hello-3fa2");
  EXPECT_EQ(words.front(), "sbatch");
  EXPECT_EQ(words.back(), "/s/jobs/hello-3fa2/slurm.sh");
  EXPECT_NE(std::find(words.begin(), words.end(), "--comment=monarch job hello-3fa2"), words.end());
  EXPECT_NE(std::find(words.begin(), words.end(), "--export=ALL,MONARCH_SUBMITTED=hello-3fa2"), words.end());
  const auto odd = submit_command("hello-3fa2", "/s%j/hello-3fa2");
  EXPECT_NE(std::find(odd.begin(), odd.end(), "--output=/s%%j/hello-3fa2/slurm.out"), odd.end());
  EXPECT_EQ(read_submission("12\n").value(), 12U);
  EXPECT_EQ(read_submission("12;cluster\n").value(), 12U);
  EXPECT_FALSE(read_submission("").ok());
  EXPECT_FALSE(read_submission("Submitted batch job 12").ok());
}

TEST(Submission, OfAJobThatGoesOnIsMarkedAsItsOwn) {
  const std::vector<std::string> mark = {"scontrol", "update", "JobId=7", "Requeue=1",
                                         "Comment=monarch job hello-3fa2"};
  EXPECT_EQ(mark_command(7, "hello-3fa2"), mark);
  EXPECT_EQ(requeue_command(7), (std::vector<std::string>{"scontrol", "requeue", "7"}));
}

TEST(Submission, FromWithinAJobHasNoOptionOfThat) {
  const auto words = successor_command("hello-3fa2", "/s/jobs/hello-3fa2",
                                       {"PATH", "SLURM_NNODES", "SBATCH_EXPORT", "SLURM_CONF", "SLURMD_NODENAME"});
  const std::vector<std::string> begins(words.begin(), words.begin() + 5);
  EXPECT_EQ(begins, (std::vector<std::string>{"/usr/bin/env", "--unset=SLURM_NNODES", "--unset=SBATCH_EXPORT",
                                              "--unset=SLURMD_NODENAME", "sbatch"}));
  EXPECT_EQ(words.back(), "/s/jobs/hello-3fa2/slurm.sh");
}

TEST(Submission, MayBeRequeuedWhereTheSpecSaysSo) {
  EXPECT_NE(script_of("{on_preempt: successor}").find("#SBATCH --no-requeue\n"), std::string::npos);
  const std::string again = script_of("{on_preempt: requeue}");
  EXPECT_NE(again.find("#SBATCH --requeue\n"), std::string::npos);
  EXPECT_EQ(again.find("--no-requeue"), std::string::npos);
}

TEST(Submission, ItsFileIsReadAsItWasWritten) {
  const SubmittedJob written{.job = 12, .submitted = "2026-11-23T09:12:07", .host = "login1"};
  EXPECT_EQ(parse_submitted(write_submitted(written)).value(), written);
  EXPECT_EQ(parse_submitted(write_submitted({.job = 0, .submitted = "", .host = "login1"}))->job, 0U)
      << "being submitted";
  for (const char* wrong : {"", "{}", R"({"v":1,"slurm":{}})", R"({"v":1,"slurm":{"job":-1}})",
                            R"({"v":1,"slurm":{"job":5000000000}})", "7"}) {
    EXPECT_FALSE(parse_submitted(wrong).ok()) << wrong;
  }
}

TEST(Submission, KnowsHowItWaits) {
  const QueuedJob waiting = read_queue("12|PENDING|Priority||2026-11-23T09:12:07|hello|monarch job hello-3fa2\n", 12);
  EXPECT_EQ(waiting.state, QueuedJob::State::kWaiting);
  EXPECT_EQ(waiting.reason, "Priority");
  const QueuedJob runs = read_queue("11|RUNNING|None|h9|x|a|\n12|RUNNING|None|h[1-2]|x|hello|(null)\n", 12);
  EXPECT_EQ(runs.state, QueuedJob::State::kRunning);
  EXPECT_EQ(runs.nodes, "h[1-2]");
  EXPECT_EQ(runs.reason, "");
  const QueuedJob cancelled = read_queue("12|CANCELLED|None||x|hello|\n", 12);
  EXPECT_EQ(cancelled.state, QueuedJob::State::kOver);
  EXPECT_FALSE(cancelled.taken);
  EXPECT_TRUE(read_queue("12|PREEMPTED|None||x|hello|\n", 12).taken);
  EXPECT_EQ(read_queue("12|COMPLETING|None|h1|x|hello|\n", 12).state, QueuedJob::State::kEnding);
  EXPECT_EQ(read_queue("", 12).state, QueuedJob::State::kUnknown);
  EXPECT_EQ(read_queue("garbage\n|||||\n12|WHATEVER|a|b|c|d|e\n", 12).state, QueuedJob::State::kUnknown);
}

TEST(Submission, IsFoundByItsWord) {
  const std::string queue =
      "3|RUNNING|None|h1|x|hello|monarch job hello-3fa22\n"
      "4|PENDING|Priority||x|hello|monarch job hello-3fa2\n"
      "5|PENDING|Priority||x|hello|something else\n"
      "6|PENDING|Priority||x|other|something else\n";
  const auto found = find_submission(queue, "hello-3fa2");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->job, 4U);
  EXPECT_FALSE(find_submission(queue, "hello-0000").has_value());
  EXPECT_TRUE(is_submission(*found, "hello-3fa2"));
  EXPECT_FALSE(is_submission(*found, "hello-3fa22")) << "it is somebody else's, and says so";
  EXPECT_TRUE(is_submission(read_queue(queue, 5), "hello-3fa2")) << "a cluster that has comments of its own";
  EXPECT_FALSE(is_submission(read_queue(queue, 6), "hello-3fa2"));
}

}  // namespace
}  // namespace monarch
