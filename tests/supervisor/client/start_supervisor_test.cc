#include "supervisor/client/start_supervisor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/client/endpoint.h"
#include "supervisor/client/new_job.h"
#include "tests/supervisor/client/scratch.h"

namespace monarch {

namespace {

// A stand-in for monarch-worker: a script that is given the same arguments, `$3` being the ready descriptor.
struct Fixture {
  Scratch scratch;
  StateDir state = *StateDir::open_for_writing(scratch.path() + "/state");
  JobDirectory job = *state.create_job("start");

  StartFailure start(std::string_view script, Duration deadline = Duration::seconds(20),
                     bool accept_new_host_keys = false) const {
    return start_supervisor(job, {.monarch = "/no/monarch", .worker = scratch.script("worker", script)},
                            {.deadline = deadline, .accept_new_host_keys = accept_new_host_keys});
  }
};

}  // namespace

TEST(StartSupervisor, TakesTheWordOfOneThatIsReady) {
  const Fixture f;
  const StartFailure failure = f.start("eval \"echo '{\\\"ready\\\":true}' >&$3\"");
  EXPECT_EQ(failure.exit_code, 0) << failure.message;
}

TEST(StartSupervisor, GivesTheArgumentsThatWereAgreed) {
  const Fixture f;
  const StartFailure failure = f.start("eval \"echo '{\\\"error\\\":\\\"'$*'\\\",\\\"exit_code\\\":9}' >&$3\"");
  EXPECT_EQ(failure.exit_code, 9);
  const std::string number =
      failure.message.substr(std::string("keep --ready-fd ").size(), failure.message.find(" --", 16) - 16);
  EXPECT_EQ(failure.message, "keep --ready-fd " + number + " -- /no/monarch supervise --job-dir " +
                                 f.job.directory.path() + " --ready-fd " + number);
}

TEST(StartSupervisor, TakesNewHostKeysOnlyWhereItIsToldTo) {
  const Fixture f;
  const std::string script = "eval \"echo '{\\\"error\\\":\\\"'$*'\\\",\\\"exit_code\\\":9}' >&$3\"";
  EXPECT_EQ(f.start(script).message.find("--accept-new"), std::string::npos);
  EXPECT_TRUE(f.start(script, Duration::seconds(20), true).message.ends_with(" --accept-new"));
}

TEST(StartSupervisor, KeepsNoDescriptorOfItsCaller) {
  const Fixture f;
  const UniqueFd inherited(::open("/dev/null", O_RDONLY));  // inheritable on purpose
  const UniqueFd high(::fcntl(inherited.get(), F_DUPFD, 77));
  ASSERT_TRUE(high.valid());
  const StartFailure failure = f.start(
      "eval \"echo '{\\\"error\\\":\\\"'$(readlink /proc/$$/fd/* | tr '\\n' ' ')'\\\",\\\"exit_code\\\":9}' >&$3\"");
  EXPECT_EQ(failure.exit_code, 9) << failure.message;
  EXPECT_NE(failure.message.find("pipe:"), std::string::npos) << failure.message;
  // Standard input alone.
  const std::size_t first = failure.message.find("/dev/null");
  EXPECT_NE(first, std::string::npos) << failure.message;
  EXPECT_EQ(failure.message.find("/dev/null", first + 1), std::string::npos) << failure.message;
}

TEST(StartSupervisor, PassesOnWhyOneDoesNotStart) {
  const Fixture f;
  const StartFailure failure =
      f.start("eval \"echo '{\\\"error\\\":\\\"the disk is full\\\",\\\"exit_code\\\":74}' >&$3\"; exit 74");
  EXPECT_EQ(failure.exit_code, 74);
  EXPECT_EQ(failure.message, "the disk is full");
}

TEST(StartSupervisor, ShowsTheEndOfTheLogOfOneThatDies) {
  const Fixture f;
  const StartFailure failure =
      f.start("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do echo line $i; done; echo boom >&2; exit 3");
  EXPECT_EQ(failure.exit_code, 70);
  EXPECT_EQ(failure.message, "the supervisor of " + f.job.id + " ended before it was ready");
  EXPECT_EQ(failure.log_tail,
            "line 3\nline 4\nline 5\nline 6\nline 7\nline 8\nline 9\nline 10\nline 11\nline 12\nline 13\nboom\n");
  struct stat log {};
  ASSERT_EQ(::stat((f.job.directory.path() + "/supervisor.log").c_str(), &log), 0);
  EXPECT_EQ(log.st_mode & 0777U, 0600U);
}

TEST(StartSupervisor, RemovesTheSecretsOfOneThatDies) {
  const Fixture f;
  const std::string folder = f.job.directory.path();
  const StartFailure failure =
      f.start("for name in key ports.json endpoint.json other; do : > \"$8/$name\"; done; exit 3");
  EXPECT_EQ(failure.exit_code, 70);
  EXPECT_NE(::access((folder + "/key").c_str(), F_OK), 0);
  EXPECT_NE(::access((folder + "/ports.json").c_str(), F_OK), 0);
  EXPECT_NE(::access((folder + "/endpoint.json").c_str(), F_OK), 0);
  EXPECT_EQ(::access((folder + "/other").c_str(), F_OK), 0) << folder;
}

TEST(StartSupervisor, GivesUpAtItsDeadlineAndEndsTheGuard) {
  const Fixture f;
  // It would hold the pipe open for ever; the signal ends it, and it says so in its log.
  const StartFailure failure = f.start(
      "trap 'echo told; exit 0' TERM; echo waiting; while :; do read line < /dev/tty || read line <&0 || :; done",
      Duration::milliseconds(300));
  EXPECT_EQ(failure.exit_code, 70);
  EXPECT_NE(failure.message.find("did not say that it is ready within 300ms"), std::string::npos) << failure.message;
}

TEST(StartSupervisor, NamesAWorkerThatCannotBeExecuted) {
  const Fixture f;
  const std::string missing = f.scratch.path() + "/nonesuch";
  const StartFailure failure = start_supervisor(f.job, {.monarch = "/no/monarch", .worker = missing});
  EXPECT_EQ(failure.exit_code, 70);
  EXPECT_EQ(failure.message, missing + ": No such file or directory");
}

TEST(StartSupervisor, RunsItInASessionOfItsOwnWithoutOurInput) {
  const Fixture f;
  const StartFailure failure = f.start(
      "own=$(cut -d' ' -f6 /proc/$$/stat); input=$(readlink /proc/$$/fd/0); "
      "eval \"echo '{\\\"error\\\":\\\"'$((own == $$))' '$input'\\\",\\\"exit_code\\\":1}' >&$3\"");
  EXPECT_EQ(failure.message, "1 /dev/null");
}

TEST(ReadyLine, IsReadyOrAReasonOrRefused) {
  EXPECT_EQ(parse_ready_line(R"({"ready":true})")->exit_code, 0);
  EXPECT_EQ(parse_ready_line(R"({"error":"x","exit_code":75})")->exit_code, 75);
  EXPECT_EQ(parse_ready_line(R"({"error":"x"})")->exit_code, 70);
  EXPECT_EQ(parse_ready_line(R"({"error":"x","exit_code":0})")->exit_code, 70);
  for (const char* line : {"", "ready", "{}", R"({"ready":false})"}) {
    EXPECT_EQ(parse_ready_line(line).error().code, ErrorCode::kInvalid) << line;
  }
}

TEST(FindBinaries, LooksBesideInLibexecAndInTheBuildTree) {
  for (const char* place : {"bin/monarch-worker", "libexec/monarch/monarch-worker", "worker/monarch-worker"}) {
    const Scratch scratch;
    scratch.write("bin/monarch", "");
    scratch.script(place, "");
    const auto found = find_binaries(scratch.path() + "/bin/monarch", "");
    ASSERT_TRUE(found.ok()) << place;
    EXPECT_TRUE(std::filesystem::equivalent(found->worker, scratch.path() + "/" + place));
  }
  const Scratch scratch;
  EXPECT_EQ(find_binaries(scratch.path() + "/bin/monarch", "").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(find_binaries("/bin/monarch", scratch.write("plain", "x")).error().code, ErrorCode::kNotFound);
}

TEST(Endpoint, ComesBackAsItWas) {
  const auto endpoint =
      parse_endpoint(write_endpoint({.host = "login1", .pid = 4711, .term = Term(3), .socket = "/run/a.sock"}));
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint->host, "login1");
  EXPECT_EQ(endpoint->pid, 4711);
  EXPECT_EQ(endpoint->term, Term(3));
  EXPECT_EQ(endpoint->socket, "/run/a.sock");
  EXPECT_EQ(parse_endpoint("{}").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(parse_endpoint("nonsense").error().code, ErrorCode::kInvalid);
}

}  // namespace monarch
