#include <fcntl.h>
#include <poll.h>

#include <array>

#include "tests/worker/keeper/keeper_fixture.h"
#include "transport/base/sanitizers.h"
#include "transport/messages/bootstrap.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"

namespace monarch {
namespace {

// `monarch-worker keep` itself, around the test's stand-in or a shell.
class Guard : public KeeperTest {
 protected:
  static std::string worker() {
    const char* path = std::getenv("MONARCH_WORKER");
    return path != nullptr ? path : "";
  }
  void SetUp() override {
    KeeperTest::SetUp();
    ASSERT_NE(worker(), "") << "MONARCH_WORKER names the executable under test";
  }
  SpawnOptions keep(std::vector<std::string> options, std::vector<std::string> command) const {
    std::vector<std::string> argv = {worker(), "keep"};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.emplace_back("--");
    argv.insert(argv.end(), command.begin(), command.end());
    return program(std::move(argv));
  }
  SpawnOptions keep_door(std::vector<std::string> options = {}) const {
    return keep(std::move(options), {self(), "as-door"});
  }
  // Speaks its first word, after which a crash is one to recover from.
  void enter_and_speak() {
    enter();
    send(KeeperPong{1});
  }
  void spawn(const Incarnation& about, const std::string& line) {
    std::vector<UniqueFd> fds;
    for (int i = 0; i < 3; ++i) fds.emplace_back(::open("/dev/null", O_RDWR | O_CLOEXEC));
    send(KeeperSpawn{{"/bin/sh", "-c", line}, {{"ADDED", "yes"}}, folder_}, about, std::move(fds));
  }
};

TEST_F(Guard, ExitsAsItsCommandDidBeforeItWasReady) {
  EXPECT_EQ(end_of(start(keep({}, {"/bin/sh", "-c", "exit 69"}))).value, 69);
  EXPECT_EQ(end_of(start(keep({}, {"/bin/sh", "-c", "kill -ABRT $$"}))).value, 134);
}

TEST_F(Guard, ExitsWith127Or126ForACommandThatCannotBeExecuted) {
  EXPECT_EQ(end_of(start(keep({}, {"/nonesuch"}))).value, 127);
  write("plain", "", 0644);
  EXPECT_EQ(end_of(start(keep({}, {path("plain")}))).value, 126);
}

TEST_F(Guard, RefusesWhatItDoesNotUnderstand) {
  EXPECT_EQ(end_of(start(keep({"--restarts", "many"}, {"true"}))).value, 2);
  EXPECT_EQ(end_of(start(keep({"--ready-fd", "3"}, {"true"}))).value, 2);
  EXPECT_EQ(end_of(start(keep({"--lock-fd", "3"}, {"true"}))).value, 2);
  EXPECT_EQ(end_of(start(keep({"--tied-fd", "31"}, {"true"}))).value, 2);
  EXPECT_EQ(end_of(start(keep({"--tied-fd", "99"}, {"true"}))).value, 2) << "it is not open";
  EXPECT_EQ(end_of(start(keep({"--frobnicate", "3"}, {"true"}))).value, 2);
  EXPECT_EQ(end_of(start(keep({}, {}))).value, 2);
}

TEST_F(Guard, PassesTheReadyDescriptorOnAndKeepsNoCopy) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const UniqueFd read_end(pipe[0]);
  UniqueFd write_end(pipe[1]);
  SpawnOptions options = keep_door({"--ready-fd", "9"});
  options.descriptors.push_back({write_end.get(), 9});
  options.environment.emplace_back("MONARCH_TEST_READY_FD=9");
  start(options);
  write_end.reset();
  enter_and_speak();
  std::string got(16, '\0');
  EXPECT_EQ(::read(read_end.get(), got.data(), got.size()), 5);
  kill_door();
  EXPECT_EQ(::read(read_end.get(), got.data(), got.size()), 0) << "the end of file that says that nobody has it";
}

TEST_F(Guard, GivesWordsThatAreForOnceToTheFirstStartAlone) {
  const std::string line = "echo \"$@\" >> " + path("words") + "; exec \"$0\" as-door";
  start(keep({"--once", "--first", "--once", "word"}, {"/bin/sh", "-c", line, self()}));
  enter_and_speak();
  kill_door();
  enter_and_speak();
  EXPECT_EQ(read("words"), "--first word\n\n");
}

TEST_F(Guard, GivesItsTieToEachStartAndToNobodyElse) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  UniqueFd read_end(pipe[0]);
  const UniqueFd write_end(pipe[1]);
  const std::string line = "readlink /proc/$$/fd/40 >> " + path("ties") + "; exec \"$0\" as-door";
  SpawnOptions options = keep({"--tied-fd", "40"}, {"/bin/sh", "-c", line, self()});
  options.descriptors.push_back({read_end.get(), 40});
  start(options);
  read_end.reset();
  enter_and_speak();
  kill_door();
  enter_and_speak();
  spawn(key(5), "ls -l /proc/$$/fd > " + path("open.new") + "; mv " + path("open.new") + " " + path("open") +
                    "; exec sleep 1000");
  ASSERT_TRUE(await_phase(5, RankPhase::kRunning));
  ASSERT_TRUE(await_file("open"));
  const std::string ties = read("ties");
  ASSERT_TRUE(ties.starts_with("pipe:[")) << ties;
  const std::string one = ties.substr(0, ties.find('\n') + 1);
  EXPECT_EQ(ties, one + one);
  EXPECT_EQ(read("open").find(one.substr(0, one.size() - 1)), std::string::npos) << read("open");
  (void)::kill(reports_[key(5)].pid, SIGKILL);
}

TEST_F(Guard, KeepsItsLockToItself) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const UniqueFd read_end(pipe[0]);
  UniqueFd write_end(pipe[1]);
  SpawnOptions options = keep_door({"--lock-fd", "9"});
  options.descriptors.push_back({write_end.get(), 9});
  Child* guard = start(options);
  write_end.reset();
  enter_and_speak();
  spawn(key(5), "exec sleep 1000");
  ASSERT_TRUE(await_phase(5, RankPhase::kRunning));
  pollfd end{.fd = read_end.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&end, 1, 0), 0) << "it has it still";
  ASSERT_TRUE(send_signal(guard->pidfd(), SIGKILL));
  EXPECT_EQ(::poll(&end, 1, 10'000), 1) << "and nobody else, though what it kept lives on";
  EXPECT_TRUE(alive(reports_[key(5)].pid));
  (void)::kill(reports_[key(5)].pid, SIGKILL);
}

TEST_F(Guard, StartsACrashedCommandAgainAndEndsInOrderWhenItSaysSo) {
  Child* guard = start(keep_door());
  enter_and_speak();
  kill_door();
  enter_and_speak();
  EXPECT_EQ(hello_->starts, 2U);
  exit_door(1);  // not announced: a crash as well
  enter_and_speak();
  EXPECT_EQ(hello_->starts, 3U);
  send(KeeperShutdown{7});
  exit_door(0);
  EXPECT_EQ(end_of(guard).value, 7);
}

TEST_F(Guard, GivesUpWith70WhenItsRestartsAreSpent) {
  Child* guard = start(keep_door({"--restarts", "1"}));
  enter_and_speak();
  spawn(key(5), "exec sleep 1000");
  ASSERT_TRUE(await_phase(5, RankPhase::kRunning));
  kill_door();
  enter_and_speak();
  ASSERT_TRUE(until([&] { return reports_[key(5)].phase == RankPhase::kRunning; }));
  kill_door();
  EXPECT_EQ(end_of(guard).value, 70);
  EXPECT_FALSE(alive(reports_[key(5)].pid)) << "what it keeps ends with it";
}

// As an srun is: a process with a child, both of which carry a step.
TEST_F(Guard, LeavesAloneWhatIsToLiveOnWithAllBelowIt) {
  Child* guard = start(keep_door({"--restarts", "0"}));
  enter_and_speak();
  spawn(key(5), "sleep 1000 & echo $! > child; wait");
  spawn(key(6), "exec sleep 1000");
  ASSERT_TRUE(await_phase(5, RankPhase::kRunning) && await_phase(6, RankPhase::kRunning));
  ASSERT_TRUE(until([&] { return !read("child").empty(); }));
  send(KeeperLetLive{key(5)});
  send(KeeperPong{1});
  kill_door();
  EXPECT_EQ(end_of(guard).value, 70);
  const auto child = static_cast<pid_t>(std::stol(read("child")));
  EXPECT_TRUE(alive(reports_[key(5)].pid));
  EXPECT_TRUE(alive(child));
  EXPECT_FALSE(alive(reports_[key(6)].pid));
  (void)::kill(reports_[key(5)].pid, SIGKILL);
  (void)::kill(child, SIGKILL);
}

TEST_F(Guard, ExitsAsARestartedCommandDidThatNoRestartHelps) {
  for (const int code : {74, 75}) {
    Child* guard = start(keep_door());
    enter_and_speak();
    spawn(key(5), "exec sleep 1000");
    ASSERT_TRUE(await_phase(5, RankPhase::kRunning));
    kill_door();
    reports_.clear();
    enter_and_speak();
    EXPECT_EQ(hello_->starts, 2U);
    ASSERT_TRUE(await_phase(5, RankPhase::kRunning));
    exit_door(static_cast<unsigned char>(code));
    EXPECT_EQ(end_of(guard).value, code);
    EXPECT_FALSE(alive(reports_[key(5)].pid)) << "what it keeps ends with it";
    reports_.clear();
  }
}

TEST_F(Guard, SpawnsAProcessWithoutGateOrLeaseAndTellsItsEnd) {
  start(keep_door());
  enter_and_speak();
  spawn(key(5), "echo $ADDED $MONARCH_KEEPER_FD > out; exit 4");
  ASSERT_TRUE(await_phase(5, RankPhase::kEnded));
  EXPECT_EQ(reports_[key(5)].end.value, 4);
  EXPECT_EQ(read("out"), "yes\n");
}

TEST_F(Guard, TellsTheNextOneOfAnEndThatNobodyHeard) {
  start(keep_door());
  enter_and_speak();
  spawn(key(5), "while ! [ -e " + path("go") + " ]; do sleep 0.01; done; exit 4");
  spawn(key(6), "exec sleep 1000");
  ASSERT_TRUE(await_phase(5, RankPhase::kRunning) && await_phase(6, RankPhase::kRunning));
  const pid_t ended = reports_[key(5)].pid;
  kill_door();
  enter_and_speak();  // the second crash is followed by a pause, in which the process ends
  kill_door();
  write("go", "", 0644);
  ASSERT_TRUE(until([&] { return !alive(ended); }));
  reports_.clear();
  enter_and_speak();
  EXPECT_EQ(hello_->spawned, std::vector<RankId>{key(6).rank});
  ASSERT_TRUE(await_phase(5, RankPhase::kEnded));
  EXPECT_EQ(reports_[key(5)].end.value, 4);
}

TEST_F(Guard, StopsASpawnedProcessWhenItIsTold) {
  start(keep_door());
  enter_and_speak();
  spawn(key(5), "exec sleep 1000");
  ASSERT_TRUE(await_phase(5, RankPhase::kRunning));
  stop({5}, Duration::zero());
  ASSERT_TRUE(await_phase(5, RankPhase::kEnded));
  EXPECT_EQ(reports_[key(5)].end.value, SIGKILL);
}

TEST_F(Guard, PassesATermOnToItsCommand) {
  Child* guard =
      start(keep({}, {"/bin/sh", "-c", "trap 'exit 42' TERM; touch " + path("up") + "; while :; do sleep 0.01; done"}));
  ASSERT_TRUE(await_file("up"));
  ASSERT_TRUE(send_signal(guard->pidfd(), SIGTERM));
  EXPECT_EQ(end_of(guard).value, 42);
}

TEST_F(Guard, KillsWhatItsCommandLeftBehindWhenItEnds) {
  Child* guard = start(keep({}, {"/bin/sh", "-c",
                                 "(setsid sh -c 'echo $$ > " + path("pid") + "; exec sleep 1000' &); while ! [ -s " +
                                     path("pid") + " ]; do sleep 0.01; done; exit 3"}));
  EXPECT_EQ(end_of(guard).value, 3);
  const auto left = static_cast<pid_t>(std::stol(read("pid")));
  EXPECT_TRUE(until([&] { return !alive(left); })) << "killed, it still had to end";
}

// The worker as a launcher sees it, with its real daemon, which finds no supervisor.
class Worker : public Guard {
 protected:
  Child* start_worker() {
    Frame order;
    order.header.job = job_of(kWorkerMark, ::getpid());
    Bootstrap bootstrap;
    bootstrap.job_id = "test-0001";
    bootstrap.host_name = "v1";
    bootstrap.term = Term(1);
    bootstrap.server_public_key = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
    bootstrap.control_endpoint = "tcp://127.0.0.1:9";
    bootstrap.bulk_endpoint = "tcp://127.0.0.1:9";
    bootstrap.state_directory = path("state");
    bootstrap.log_directory = path("logs");
    std::filesystem::create_directories(bootstrap.state_directory);
    std::filesystem::create_directories(bootstrap.log_directory);
    order.payload = encode_payload(bootstrap);
    write("order", encode_frame(order), 0600);
    const UniqueFd input(::open(path("order").c_str(), O_RDONLY | O_CLOEXEC));
    const UniqueFd output(::open(path("reply").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    SpawnOptions options = program({worker()});
    options.descriptors = {{input.get(), 0}, {output.get(), 1}, {2, 2}};
    return start(options);
  }
  Result<BootstrapReply> await_reply() {
    Result<BootstrapReply> reply = Error{ErrorCode::kTimeout, "no reply"};
    (void)until([&] {
      const auto frame = decode_frame(read("reply"), 1U << 20U);
      if (!frame) return false;
      reply = decode_payload<BootstrapReply>(frame.value().payload);
      return reply.ok();
    });
    return reply;
  }
  static long private_dirty_kilobytes(pid_t pid) {
    std::ifstream in(text("/proc/", pid, "/smaps_rollup"));
    for (std::string word; in >> word;) {
      if (word != "Private_Dirty:") continue;
      long kilobytes = 0;
      in >> kilobytes;
      return kilobytes;
    }
    return -1;
  }
  static pid_t child_of(pid_t parent) {
    for (const ProcessEntry& entry : list_processes()) {
      if (entry.parent == parent && !entry.dead()) return entry.pid;
    }
    return 0;
  }
};

TEST_F(Worker, StartsADaemonThatAnswersTheLauncher) {
  Child* keeper = start_worker();
  const auto reply = await_reply();
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply.value().error, "");
  EXPECT_EQ(reply.value().public_key.size(), 40U);
  EXPECT_EQ(reply.value().keeper_pid, keeper->pid());
  const long dirty = private_dirty_kilobytes(keeper->pid());
  RecordProperty("keeper_private_dirty_kilobytes", static_cast<int>(dirty));
  EXPECT_GT(dirty, 0);
  if (!kSanitized) {  // their shadow memory is not ours
    EXPECT_LT(dirty, 1024) << "of the keeper's own memory";
  }
  const pid_t daemon = child_of(keeper->pid());
  ASSERT_NE(daemon, 0);
  ASSERT_TRUE(send_signal(keeper->pidfd(), SIGTERM));
  EXPECT_EQ(end_of(keeper).value, 143);
  EXPECT_FALSE(alive(daemon));
}

TEST_F(Worker, StartsItsDaemonAgainWhenThatIsKilled) {
  Child* keeper = start_worker();
  ASSERT_TRUE(await_reply().ok());
  const pid_t first = child_of(keeper->pid());
  ASSERT_NE(first, 0);
  const UniqueFd pidfd = open_process(*read_process(first));
  ASSERT_TRUE(send_signal(pidfd.get(), SIGKILL));
  ASSERT_TRUE(until([&] {
    const pid_t now = child_of(keeper->pid());
    return now != 0 && now != first;
  }));
  EXPECT_TRUE(alive(keeper->pid()));
}

TEST_F(Worker, ItsDaemonLeavesWhenTheKeeperIsKilled) {
  Child* keeper = start_worker();
  ASSERT_TRUE(await_reply().ok());
  const pid_t daemon = child_of(keeper->pid());
  ASSERT_NE(daemon, 0);
  ASSERT_TRUE(send_signal(keeper->pidfd(), SIGKILL));
  end_of(keeper);
  EXPECT_TRUE(until([&] { return !alive(daemon); }));
}

TEST_F(Worker, AnswersABootstrapThatIsNoneWithTheReason) {
  write("garbage", "not a frame", 0644);
  const UniqueFd input(::open(path("garbage").c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd output(::open(path("reply").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  SpawnOptions options = program({worker()});
  options.descriptors = {{input.get(), 0}, {output.get(), 1}, {2, 2}};
  EXPECT_EQ(end_of(start(options)).value, 70);
  const auto frame = decode_frame(read("reply"), 1U << 20U);
  ASSERT_TRUE(frame.ok());
  const auto reply = decode_payload<BootstrapReply>(frame.value().payload);
  ASSERT_TRUE(reply.ok());
  EXPECT_NE(reply.value().error, "");
}

}  // namespace
}  // namespace monarch
