#include "supervisor/client/start_supervisor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "supervisor/client/link/endpoint.h"
#include "supervisor/client/new_job.h"
#include "supervisor/journal/job_lock.h"
#include "tests/supervisor/client/scratch.h"

namespace monarch {

namespace {

// A stand-in for monarch-worker: a script that is given the same arguments,
// `$3` being the ready descriptor.
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

// Who it is that a refusal names.
pid_t guard_of(const StartFailure& refusal) {
  const std::size_t at = refusal.message.find(", pid ");
  return at == std::string::npos ? 0 : static_cast<pid_t>(std::stol(refusal.message.substr(at + 6)));
}

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
  const std::string before_lock = "keep --ready-fd " + number + " --lock-fd ";
  const std::string lock =
      failure.message.substr(before_lock.size(), failure.message.find(" --", before_lock.size()) - before_lock.size());
  EXPECT_EQ(failure.message, before_lock + lock + " -- /no/monarch supervise --job-dir " + f.job.directory.path() +
                                 " --ready-fd " + number);
}

TEST(StartSupervisor, GivesGuardAndSupervisorWhatTheJobIsTiedToUnderOneNumber) {
  const Fixture f;
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  // The shell writes to descriptors of one digit alone.
  const UniqueFd reader(::fcntl(pipe[0], F_DUPFD_CLOEXEC, 50));
  for (const int low : pipe) ::close(low);
  const std::string script =
      "eval \"echo '{\\\"error\\\":\\\"'$* $(readlink /proc/$$/fd/$7)'\\\",\\\"exit_code\\\":9}' >&$3\"";
  const StartFailure failure = start_supervisor(
      f.job, {.monarch = "/no/monarch", .worker = f.scratch.script("worker", script)}, {.tied = reader.get()});
  const std::string tie = text(" --tied-fd ", limits::kFirstTiedDescriptor);
  const std::size_t first = failure.message.find(tie + " -- ");
  ASSERT_NE(first, std::string::npos) << failure.message;
  EXPECT_NE(failure.message.find(tie, first + 1), std::string::npos) << failure.message;
  EXPECT_NE(failure.message.find(" pipe:["), std::string::npos) << failure.message;
}

TEST(StartSupervisor, TakesNewHostKeysOnlyWhereItIsToldTo) {
  const std::string script = "eval \"echo '{\\\"error\\\":\\\"'$*'\\\",\\\"exit_code\\\":9}' >&$3\"";
  EXPECT_EQ(Fixture().start(script).message.find("--accept-new"), std::string::npos);
  EXPECT_TRUE(Fixture().start(script, Duration::seconds(20), true).message.ends_with(" --accept-new"));
}

TEST(StartSupervisor, KeepsNoDescriptorOfItsCaller) {
  const Fixture f;
  const UniqueFd inherited(::open("/dev/null", O_RDONLY));  // inheritable on purpose
  const UniqueFd high(::fcntl(inherited.get(), F_DUPFD, 77));
  ASSERT_TRUE(high.valid());
  const StartFailure failure = f.start(
      "eval \"echo '{\\\"error\\\":\\\"'$(readlink /proc/$$/fd/* | tr "
      "'\\n' ' ')'\\\",\\\"exit_code\\\":9}' >&$3\"");
  EXPECT_EQ(failure.exit_code, 9) << failure.message;
  EXPECT_NE(failure.message.find("pipe:"), std::string::npos) << failure.message;
  // Standard input alone.
  const std::size_t first = failure.message.find("/dev/null");
  EXPECT_NE(first, std::string::npos) << failure.message;
  EXPECT_EQ(failure.message.find("/dev/null", first + 1), std::string::npos) << failure.message;
}

TEST(StartSupervisor, PassesOnWhyOneDoesNotStart) {
  const Fixture f;
  const StartFailure failure = f.start(
      "eval \"echo '{\\\"error\\\":\\\"the disk is "
      "full\\\",\\\"exit_code\\\":74}' >&$3\"; exit 74");
  EXPECT_EQ(failure.exit_code, 74);
  EXPECT_EQ(failure.message, "the disk is full");
}

TEST(StartSupervisor, ShowsTheEndOfTheLogOfOneThatDies) {
  const Fixture f;
  const StartFailure failure = f.start(
      "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do echo line $i; done; "
      "echo boom >&2; exit 3");
  EXPECT_EQ(failure.exit_code, 70);
  EXPECT_EQ(failure.message, "the supervisor of " + f.job.id + " ended before it was ready");
  EXPECT_EQ(failure.log_tail,
            "line 3\nline 4\nline 5\nline 6\nline 7\nline 8\nline 9\nline "
            "10\nline 11\nline 12\nline 13\nboom\n");
  struct stat log {};
  ASSERT_EQ(::stat((f.job.directory.path() + "/supervisor.log").c_str(), &log), 0);
  EXPECT_EQ(log.st_mode & 0777U, 0600U);
}

TEST(StartSupervisor, RemovesTheSecretsOfOneThatDies) {
  const Fixture f;
  const std::string folder = f.job.directory.path();
  const StartFailure failure = f.start(
      "for name in key ports.json endpoint.json other; do : > "
      "\"${10}/$name\"; done; exit 3");
  EXPECT_EQ(failure.exit_code, 70);
  EXPECT_NE(::access((folder + "/key").c_str(), F_OK), 0);
  EXPECT_NE(::access((folder + "/ports.json").c_str(), F_OK), 0);
  EXPECT_NE(::access((folder + "/endpoint.json").c_str(), F_OK), 0);
  EXPECT_EQ(::access((folder + "/other").c_str(), F_OK), 0) << folder;
}

TEST(StartSupervisor, GivesTheGuardALockThatIsHeldAsLongAsItLives) {
  const Fixture f;
  const std::string fifo = f.scratch.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const UniqueFd word(::open(fifo.c_str(), O_RDWR | O_CLOEXEC));
  const std::string script = "eval \"echo '{\\\"ready\\\":true}' >&$3\"; read line < " + fifo;
  ASSERT_EQ(f.start(script).exit_code, 0);
  const StartFailure second = f.start(script);
  EXPECT_EQ(second.exit_code, 75) << second.message;
  EXPECT_NE(second.message.find("a guard holds " + f.job.directory.path() + ", pid "), std::string::npos)
      << second.message;
  ASSERT_EQ(::write(word.get(), "\n", 1), 1);
  int status = 0;
  ASSERT_GT(::waitpid(guard_of(second), &status, 0), 0);
  EXPECT_TRUE(take_guard_lock(f.job.directory).ok());
}

// Its arguments: launch-for --job-dir DIR --ready-fd N.
StartFailure start_elsewhere(const Fixture& f, std::string_view script, int interrupt = -1) {
  return start_supervisor(f.job, {.monarch = f.scratch.script("monarch", script), .worker = "/no/worker"},
                          {.deadline = Duration::seconds(20), .away = true, .interrupt = interrupt});
}

TEST(StartSupervisor, OfAJobElsewhereStartsWhoLaunchesTheHostsWithoutAGuard) {
  const Fixture f;
  const StartFailure failure =
      start_elsewhere(f, "eval \"echo '{\\\"error\\\":\\\"'$*'\\\",\\\"exit_code\\\":9}' >&$5\"");
  EXPECT_EQ(failure.exit_code, 9);
  EXPECT_TRUE(failure.message.starts_with("launch-for --job-dir " + f.job.directory.path() + " --ready-fd "))
      << failure.message;
}

TEST(StartSupervisor, OfAJobElsewhereTellsOfTheHostThatCouldNotBeReached) {
  const Fixture f;
  const StartFailure failure = start_elsewhere(f,
                                               "eval \"echo "
                                               "'{\\\"error\\\":\\\"no\\\",\\\"exit_code\\\":3,\\\"host\\\":{"
                                               "\\\"host\\\":\\\"h1\\\",\\\"kind\\\":"
                                               "\\\"refused\\\",\\\"elapsed_milliseconds\\\":12}}' >&$5\"");
  EXPECT_EQ(failure.exit_code, 3);
  ASSERT_TRUE(failure.host);
  EXPECT_EQ(failure.host->host, "h1");
  EXPECT_EQ(failure.host->kind, "refused");
  EXPECT_EQ(failure.host->elapsed_milliseconds, 12);
}

TEST(StartSupervisor, IsInterrupted) {
  const Fixture f;
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reads(ends[0]);
  const UniqueFd writes(ends[1]);
  ASSERT_EQ(::write(writes.get(), "x", 1), 1);
  const StartFailure failure = start_elsewhere(f, "exec sleep 30", reads.get());
  EXPECT_EQ(failure.exit_code, 130);
  EXPECT_EQ(failure.message, "interrupted before the supervisor of " + f.job.id + " was ready");
}

TEST(ReadyLine, IsReadAsItIsWritten) {
  for (const StartFailure& said :
       {StartFailure{}, StartFailure{.exit_code = 75, .message = "held"},
        StartFailure{
            .exit_code = 69, .message = "h1: refused", .host = HostFailure{.host = "h1", .kind = "refused"}}}) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd reads(ends[0]);
    write_ready(ends[1], said);
    std::string line(4096, '\0');
    line.resize(static_cast<std::size_t>(::read(reads.get(), line.data(), line.size())));
    const auto read = parse_ready_line(line.substr(0, line.find('\n')));
    ASSERT_TRUE(read.ok()) << line;
    EXPECT_EQ(read->exit_code, said.exit_code);
    EXPECT_EQ(read->message, said.message);
    ASSERT_EQ(read->host.has_value(), said.host.has_value());
    if (said.host) {
      EXPECT_EQ(read->host->kind, said.host->kind);
    }
  }
}

TEST(StartSupervisor, GivesUpAtItsDeadlineAndEndsTheGuard) {
  const Fixture f;
  // It would hold the pipe open for ever; the signal ends it, and it says so in
  // its log.
  const StartFailure failure = f.start(
      "trap 'echo told; exit 0' TERM; echo waiting; while :; do read "
      "line < /dev/tty || read line <&0 || :; done",
      Duration::milliseconds(300));
  EXPECT_EQ(failure.exit_code, 70);
  EXPECT_NE(failure.message.find("did not say that it is ready within 300ms"), std::string::npos) << failure.message;
}

// The supervisor was killed, which alone held the descriptor by then.
TEST(StartSupervisor, LeavesNoGuardThatWouldStartAnother) {
  const Fixture f;
  const std::string told = f.scratch.path() + "/told";
  const StartFailure failure = f.start("trap 'echo > " + told + "; exit 0' TERM; eval \"exec $3>&-\"\n" +
                                       "for n in $(seq 200); do sleep 0.05; done");
  EXPECT_EQ(failure.exit_code, 70);
  EXPECT_NE(failure.message.find("ended before it was ready"), std::string::npos) << failure.message;
  EXPECT_EQ(::access(told.c_str(), F_OK), 0);
}

TEST(StartSupervisor, DoesNotEndOneThatIsSlowToTakeAJobOver) {
  const Fixture f;
  const std::string fifo = f.scratch.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const UniqueFd word(::open(fifo.c_str(), O_RDWR | O_CLOEXEC));
  const StartFailure failure = start_supervisor(
      f.job, {.monarch = "/no/monarch", .worker = f.scratch.script("worker", "read line < " + fifo + "; exit 9")},
      {.deadline = Duration::milliseconds(100), .resume = true});
  EXPECT_EQ(failure.exit_code, 70);
  EXPECT_TRUE(failure.message.ends_with("has not said within 100ms that it is ready; it goes on with that"))
      << failure.message;
  const pid_t guard = guard_of(f.start("exit 0"));
  ASSERT_GT(guard, 0) << "it lives";
  ASSERT_EQ(::write(word.get(), "\n", 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(guard, &status, 0), guard);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 9) << "not by a signal";
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
      "eval \"echo '{\\\"error\\\":\\\"'$((own == $$))' "
      "'$input'\\\",\\\"exit_code\\\":1}' >&$3\"");
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
