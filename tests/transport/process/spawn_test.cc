#include "transport/process/spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>

#include "tests/transport/process/process_fixture.h"

namespace monarch {
namespace {

class Spawn : public ProcessTest {
 protected:
  StepFailure failure_of(const SpawnOptions& options) {
    Child* child = start(options);
    EXPECT_NE(child, nullptr);
    EXPECT_TRUE(until([&] { return child->exec_state() != ExecState::kPending; }));
    EXPECT_EQ(child->exec_state(), ExecState::kFailed);
    EXPECT_EQ(end_of(child).value, 127);
    return child->failure();
  }
  SpawnOptions program(std::vector<std::string> argv) const {
    SpawnOptions options;
    options.program = std::move(argv);
    options.environment = {"PATH=" + folder_ + ":/usr/bin:/bin"};
    return options;
  }
};

TEST_F(Spawn, LetsThoseTraceItWhoAreMeant) {
  EXPECT_EQ(ptracer_of(Tracer::kNobody, 7), std::nullopt);
  EXPECT_EQ(ptracer_of(Tracer::kParent, 7), 7U);
  EXPECT_EQ(ptracer_of(Tracer::kAnybody, 7), PR_SET_PTRACER_ANY);
}

TEST_F(Spawn, TellsTheExitCode) {
  const ExitStatus status = end_of(start(shell("exit 7")));
  EXPECT_FALSE(status.signaled);
  EXPECT_EQ(status.value, 7);
  EXPECT_GT(status.peak_resident_kilobytes, 0);
}

TEST_F(Spawn, TellsTheSignal) {
  const ExitStatus status = end_of(start(shell("kill -SEGV $$")));
  EXPECT_TRUE(status.signaled);
  EXPECT_EQ(status.value, SIGSEGV);
}

TEST_F(Spawn, TellsThatTheProgramIsMissing) {
  const StepFailure failure = failure_of(program({"/nonesuch/program"}));
  EXPECT_EQ(failure.error, ENOENT);
  EXPECT_EQ(failure.detail, "exec /nonesuch/program");
}

TEST_F(Spawn, TellsThatTheProgramIsNotInItsPath) {
  const StepFailure failure = failure_of(program({"nonesuch-program"}));
  EXPECT_EQ(failure.error, ENOENT);
  EXPECT_EQ(failure.detail, "exec nonesuch-program (not in PATH)");
}

TEST_F(Spawn, SearchesThePathOfTheChildAndNotItsOwn) {
  write("only-here", "#!/bin/sh\nexit 9\n", 0755);
  EXPECT_EQ(end_of(start(program({"only-here"}))).value, 9);
}

TEST_F(Spawn, TellsThatTheProgramMayNotBeExecuted) {
  write("plain", "#!/bin/sh\n", 0644);
  const StepFailure failure = failure_of(program({path("plain")}));
  EXPECT_EQ(failure.error, EACCES);
  EXPECT_EQ(failure.detail, "exec " + path("plain"));
}

TEST_F(Spawn, GoesOnInThePathBehindOneThatMayNotBeExecuted) {
  write("true", "not executable", 0644);
  EXPECT_EQ(end_of(start(program({"true"}))).value, 0);
}

TEST_F(Spawn, TellsThatTheFileIsNoProgram) {
  write("words", "just words\n", 0755);
  const StepFailure failure = failure_of(program({path("words")}));
  EXPECT_EQ(failure.error, ENOEXEC);
  EXPECT_EQ(failure.detail, "exec " + path("words"));
}

TEST_F(Spawn, NamesTheInterpreterThatAScriptLacks) {
  write("script", "#!/nonesuch/python3 -u\n", 0755);
  const StepFailure failure = failure_of(program({path("script")}));
  EXPECT_EQ(failure.error, ENOENT);
  EXPECT_EQ(failure.detail, "exec " + path("script") + " (its interpreter /nonesuch/python3 is missing)");
}

TEST_F(Spawn, TellsThatTheArgumentsAreTooLong) {
  const StepFailure failure = failure_of(program({"/bin/true", std::string(1U << 20U, 'x')}));
  EXPECT_EQ(failure.error, E2BIG);
}

TEST_F(Spawn, NamesAWorkingDirectoryThatIsNotThere) {
  SpawnOptions options = program({"/bin/true"});
  options.workdir = "/nonesuch/folder";
  const StepFailure failure = failure_of(options);
  EXPECT_EQ(failure.error, ENOENT);
  EXPECT_EQ(failure.detail, "chdir /nonesuch/folder");
}

TEST_F(Spawn, ExecutesNothingWhileTheGateIsClosed) {
  Child* child = fork(shell("touch " + path("ran")));
  // Its session is one of the first things that the child makes: it is past all but its gate soon after.
  EXPECT_TRUE(until([&] {
    const auto entry = read_process(child->pid());
    return entry && entry->session == child->pid() && entry->state == 'S';
  }));
  EXPECT_EQ(child->exec_state(), ExecState::kPending);
  child->close_gate();
  const ExitStatus status = end_of(child);
  EXPECT_EQ(status.value, 127);
  EXPECT_FALSE(std::filesystem::exists(path("ran")));
}

TEST_F(Spawn, AClosedGateEndsItsChildThoughSiblingsStandAtTheirs) {
  Child* first = fork(shell("true"));
  Child* second = fork(shell("true"));
  first->close_gate();
  EXPECT_EQ(end_of(first).value, 127);
  EXPECT_FALSE(ends_.contains(second->pid()));
}

TEST_F(Spawn, HandsOverOnlyTheDescriptorsThatWereNamed) {
  const UniqueFd other(::open("/dev/null", O_RDONLY));  // inheritable on purpose
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const UniqueFd read_end(pipe[0]);
  UniqueFd write_end(pipe[1]);
  SpawnOptions options = shell("ls -l /proc/self/fd > " + path("fds") + "; echo through >&7");
  options.descriptors = {{write_end.get(), 7}};
  end_of(start(options));
  write_end.reset();
  std::string got(64, '\0');
  const ssize_t count = ::read(read_end.get(), got.data(), got.size());
  ASSERT_GT(count, 0);
  EXPECT_EQ(got.substr(0, static_cast<std::size_t>(count)), "through\n");
  // 0, 1 (the file), 2, 7, and the folder that ls itself reads.
  const std::string listing = read("fds");
  EXPECT_EQ(std::count(listing.begin(), listing.end(), '>'), 5) << listing;
}

TEST_F(Spawn, GivesEveryChildASessionAndCleanSignals) {
  (void)std::signal(SIGUSR1, SIG_IGN);
  end_of(
      start(shell("ps -o pid=,sid= -p $$ > " + path("ids") + "; grep SigIgn /proc/self/status > " + path("ignored"))));
  (void)std::signal(SIGUSR1, SIG_DFL);
  pid_t pid = 0;
  pid_t session = -1;
  std::istringstream(read("ids")) >> pid >> session;
  EXPECT_EQ(pid, session);
  EXPECT_EQ(read("ignored"), "SigIgn:\t0000000000000000\n");
}

TEST_F(Spawn, SignalsTheWholeGroupOfAChild) {
  Child* child = start(shell("sh -c 'trap \"touch " + path("inner") + "; exit\" TERM; touch " + path("ready") +
                             "; while :; do sleep 0.01; done' & wait; wait"));
  ASSERT_TRUE(until([&] { return std::filesystem::exists(path("ready")); }));
  EXPECT_TRUE(send_group_signal(child->pidfd(), child->pid(), SIGTERM));
  end_of(child);
  EXPECT_TRUE(until([&] { return std::filesystem::exists(path("inner")); }));
}

TEST_F(Spawn, SignalsAChildThatLeadsNoGroupYet) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  ASSERT_GT(child, 0);
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  EXPECT_TRUE(send_group_signal(pidfd.get(), child, SIGUSR1));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1) << status;
  EXPECT_FALSE(send_group_signal(pidfd.get(), child, SIGUSR1)) << "it was reaped";
}

TEST_F(Spawn, FiftyChildrenEndEachWithItsOwnCode) {
  std::vector<Child*> all;
  for (int i = 0; i < 50; ++i) all.push_back(start(shell("exit " + std::to_string(i))));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(end_of(all[static_cast<std::size_t>(i)]).value, i);
}

TEST_F(Spawn, ExecutesWithTheEnvironmentThatItsPreparationLeaves) {
  write("only-here", "#!/bin/sh\n[ \"$A\" = prepared ] && [ \"$PWD_OF_STEP\" = " + folder_ + " ]", 0755);
  SpawnOptions options = shell("");
  options.program = {"only-here"};
  options.environment = {"PATH=/nonesuch"};
  options.workdir = folder_;
  options.prepare = [this](std::vector<std::string>& environment) -> std::optional<StepFailure> {
    environment = {"PATH=" + folder_ + ":/usr/bin:/bin", "A=prepared",
                   "PWD_OF_STEP=" + std::filesystem::current_path().string()};
    return std::nullopt;
  };
  EXPECT_EQ(end_of(start(options)).value, 0);
}

TEST_F(Spawn, TellsWhyThePreparationFailedAndExecutesNothing) {
  SpawnOptions options = shell("touch " + path("ran"));
  options.prepare = [](std::vector<std::string>&) { return StepFailure{EPERM, "bind to processors 0-3"}; };
  const StepFailure refused = failure_of(options);
  EXPECT_EQ(refused.error, EPERM);
  EXPECT_EQ(refused.detail, "bind to processors 0-3");
  EXPECT_EQ(refused.exit_code, 0);
  options.prepare = [](std::vector<std::string>&) { return StepFailure{0, std::string(10'000, 'x'), 3}; };
  const StepFailure ended = failure_of(options);
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_GT(ended.detail.size(), 4'000U) << "as much of it as a pipe takes at once";
  EXPECT_EQ(ended.detail, std::string(ended.detail.size(), 'x'));
  EXPECT_FALSE(std::filesystem::exists(path("ran")));
}

TEST_F(Spawn, PreparesBehindTheGate) {
  SpawnOptions options = shell("true");
  options.prepare = [this](std::vector<std::string>&) -> std::optional<StepFailure> {
    write("prepared", "", 0644);
    return std::nullopt;
  };
  Child* child = fork(options);
  ASSERT_TRUE(until([&] { return child->exec_state() == ExecState::kPending && child->at_gate(); }));
  EXPECT_FALSE(std::filesystem::exists(path("prepared")));
  child->open_gate();
  EXPECT_EQ(end_of(child).value, 0);
  EXPECT_TRUE(std::filesystem::exists(path("prepared")));
}

TEST_F(Spawn, KeepsADescriptorOpenUntilTheProgramIsExecutedAndNoLonger) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd read_end(pipe[0]);
  UniqueFd write_end(pipe[1]);
  SpawnOptions options = shell("read line < " + path("go"));
  options.kept = {write_end.get()};
  ASSERT_EQ(::mkfifo(path("go").c_str(), 0600), 0);
  Child* child = fork(options);
  ASSERT_TRUE(until([&] { return child->exec_state() == ExecState::kPending && child->at_gate(); }));
  write_end.reset();
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), -1) << "the child has the other end";
  child->open_gate();
  EXPECT_TRUE(until([&] { return ::read(read_end.get(), &byte, 1) == 0; }));
  EXPECT_FALSE(ends_.contains(child->pid()));
}

TEST_F(Spawn, AtItsGateAChildHasNothingOfItsParentsOpen) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd read_end(pipe[0]);
  UniqueFd write_end(pipe[1]);
  Child* child = fork(shell("true"));
  ASSERT_TRUE(until([&] { return child->exec_state() == ExecState::kPending && child->at_gate(); }));
  write_end.reset();
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 0);
}

TEST_F(Spawn, ReapsWhatItAdoptsAndLeavesTheWatchedOnesToTheirWatch) {
  Child* child = start(shell("(setsid sleep 0.05 &) ; exit 3"));
  EXPECT_TRUE(until([&] {
    watch_->reap_adopted();
    return ends_.contains(child->pid()) && children_of(::getpid()) == std::vector<pid_t>{child->pid()};
  }));
  EXPECT_EQ(ends_[child->pid()].value, 3);
}

}  // namespace
}  // namespace monarch
