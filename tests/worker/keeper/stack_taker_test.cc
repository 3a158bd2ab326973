// Debuggers of the test's own making, before real processes.

#include "worker/keeper/stack_taker.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/loop/signals.h"

namespace monarch {
namespace {

constexpr Duration kPatience = Duration::seconds(20);

struct Told {
  Incarnation key;
  Stacks stacks;
};

class StackTakers : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "monarch-stacks-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    loop_ = *EventLoop::create();
    watch_ = std::make_unique<ChildWatch>(*loop_);
    // Names of tools are searched for in the folder first; what they need themselves is called by its path.
    taker_ = std::make_unique<StackTaker>(*loop_, *watch_, Environment{{"PATH", folder_}},
                                          StackTakerHandlers{.leader = [this](const Incarnation&) { return leader_; },
                                                             .answer =
                                                                 [this](const Incarnation& key, Stacks stacks) {
                                                                   told_.push_back({key, std::move(stacks)});
                                                                 }});
  }
  void TearDown() override {
    taker_.reset();
    for (const pid_t pid : children_) {
      (void)::kill(pid, SIGKILL);
      (void)::waitpid(pid, nullptr, 0);
    }
    watch_.reset();
    loop_.reset();
    std::filesystem::remove_all(folder_);
  }

  void tool(const std::string& name, const std::string& script) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << "#!/bin/sh\nPATH=/usr/bin:/bin\n" << script << '\n';
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  // A process that waits, leader of a session as ranks are.
  pid_t process() {
    const pid_t pid = ::fork();
    if (pid == 0) {
      (void)::setsid();
      (void)::execl("/bin/sleep", "sleep", "600", nullptr);
      ::_exit(127);
    }
    children_.push_back(pid);
    EXPECT_TRUE(until([&] {
      return std::filesystem::read_symlink(text("/proc/", pid, "/exe")).filename() != "worker-keeper-parts-test";
    }));
    leader_ = pid;
    return pid;
  }
  static TakeStacks order(std::uint64_t number, Duration limit = kPatience, std::uint32_t rank = 0) {
    return {.process = {{MeshId(0), Rank(rank)}, {}}, .number = number, .limit = limit, .patience = kPatience};
  }
  template <class Condition>
  bool until(Condition condition) {
    const Instant deadline = boot_now() + kPatience;
    while (!condition()) {
      if (boot_now() >= deadline) return false;
      pollfd wait{.fd = loop_->descriptor(), .events = POLLIN, .revents = 0};
      (void)::poll(&wait, 1,
                   std::min(20, EventLoop::wait_milliseconds(boot_now(), std::min(loop_->next_due(), deadline))));
      loop_->turn();
    }
    return true;
  }
  const Stacks& answer(std::size_t index = 0) {
    EXPECT_TRUE(until([&] { return told_.size() > index; })) << "no answer";
    static const Stacks none;
    return told_.size() > index ? told_[index].stacks : none;
  }
  const ProcessStacks& only(std::size_t index = 0) {
    static const ProcessStacks none;
    const Stacks& stacks = answer(index);
    EXPECT_EQ(stacks.processes.size(), 1U);
    return stacks.processes.empty() ? none : stacks.processes.front();
  }
  static char state_of(pid_t pid) { return read_process(pid).value_or(ProcessEntry{}).state; }

  std::string folder_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<ChildWatch> watch_;
  std::unique_ptr<StackTaker> taker_;
  std::variant<pid_t, StacksEnd> leader_ = StacksEnd::kEnded;
  std::vector<Told> told_;
  std::vector<pid_t> children_;
};

TEST_F(StackTakers, ShowWhatTheFirstDebuggerThatIsThereWrites) {
  const pid_t pid = process();
  tool("gdb", "echo '#0  main ()'; echo $* >&2");
  taker_->take(order(7));
  const ProcessStacks& shown = only();
  EXPECT_EQ(told_.front().stacks.number, 7U);
  EXPECT_EQ(shown.end, StacksEnd::kTaken) << shown.detail;
  EXPECT_EQ(shown.tool, StackTool::kGdb);
  EXPECT_EQ(shown.output, "#0  main ()\n");
  EXPECT_EQ(shown.name, "sleep");
  EXPECT_EQ(shown.pid, pid);
  tool("eu-stack", "echo '#0  0x01 main'");
  taker_->take(order(8));
  EXPECT_EQ(only(1).tool, StackTool::kEuStack);
}

TEST_F(StackTakers, SayThatThereIsNoDebugger) {
  process();
  taker_->take(order(1));
  EXPECT_EQ(only().end, StacksEnd::kNoTool);
}

TEST_F(StackTakers, GoOnToTheNextDebuggerWhereOneFails) {
  process();
  tool("eu-stack", "echo 'Error: no unwinder' >&2; exit 2");
  tool("gdb", "echo '#0  main ()'");
  taker_->take(order(1));
  EXPECT_EQ(only().tool, StackTool::kGdb);
  EXPECT_EQ(only().end, StacksEnd::kTaken);
}

TEST_F(StackTakers, DoNotGoOnWhereTheKernelRefuses) {
  process();
  tool("eu-stack", "echo 'eu-stack: dwfl_linux_proc_attach: Operation not permitted' >&2; exit 2");
  tool("gdb", "echo '#0  main ()'");
  taker_->take(order(1));
  EXPECT_EQ(only().end, StacksEnd::kRefused);
  EXPECT_NE(only().detail.find("Operation not permitted"), std::string::npos);
}

TEST_F(StackTakers, KillADebuggerAtItsLimitAndWakeWhatItLeftStopped) {
  const pid_t pid = process();
  // As one that is killed between its stop and its seeing it.
  tool("gdb", text("echo $$ > ", folder_, "/pid; kill -STOP ", pid, "; echo '#0  half ()'; exec sleep 600"));
  taker_->take(order(1, Duration::seconds(1)));
  const ProcessStacks& shown = only();
  EXPECT_EQ(shown.end, StacksEnd::kTimedOut);
  EXPECT_EQ(shown.detail, "gdb was not done within 1s and was killed");
  EXPECT_EQ(shown.output, "#0  half ()\n");
  EXPECT_TRUE(until([&] { return state_of(pid) == 'S'; })) << state_of(pid);
  pid_t tool_pid = 0;
  std::ifstream(folder_ + "/pid") >> tool_pid;
  ASSERT_GT(tool_pid, 0);
  EXPECT_TRUE(until([&] { return !read_process(tool_pid); }));
  // Its place is free again.
  tool("gdb", "echo '#0  main ()'");
  taker_->take(order(2));
  EXPECT_EQ(only(1).end, StacksEnd::kTaken);
}

TEST_F(StackTakers, LeaveStoppedWhatOthersStoppedMeanwhileAndWakeWhatTheyWoke) {
  const pid_t pid = process();
  const Incarnation key{{MeshId(0), Rank(0)}, {}};
  for (const bool stopped : {true, false}) {
    const std::string began = text(folder_, "/began.", stopped);
    tool("gdb", text("kill -STOP ", pid, "; echo > ", began, "; exec sleep 600"));
    taker_->take(order(1, Duration::seconds(1)));
    ASSERT_TRUE(until([&] { return std::filesystem::exists(began); }));
    taker_->leave(key, stopped);
    const std::size_t so_far = told_.size();
    EXPECT_EQ(only(so_far).end, StacksEnd::kTimedOut);
    tool("gdb", "echo '#0  main ()'");
    taker_->take(order(2));  // begins once nothing of the first is left
    EXPECT_EQ(only(so_far + 1).end, StacksEnd::kTaken);
    EXPECT_EQ(state_of(pid), stopped ? 'T' : 'S');
  }
}

TEST_F(StackTakers, KnowTheirOwnDebuggersFromAnotherChildOfTheirs) {
  const pid_t pid = process();
  const pid_t other = process();
  leader_ = pid;
  tool("gdb", text("sleep 600 & echo $! > ", folder_, "/helper; echo $$ > ", folder_, "/pid; wait"));
  taker_->take(order(1));
  pid_t debugger = 0;
  pid_t helper = 0;
  ASSERT_TRUE(until([&] {
    std::ifstream(folder_ + "/helper") >> helper;
    std::ifstream(folder_ + "/pid") >> debugger;
    return debugger != 0;
  }));
  EXPECT_TRUE(taker_->is_ours(debugger));
  EXPECT_TRUE(taker_->is_ours(helper));
  EXPECT_FALSE(taker_->is_ours(other));
  EXPECT_FALSE(taker_->is_ours(pid));
}

TEST_F(StackTakers, LeaveNothingOfADebuggerThatEnds) {
  process();
  tool("gdb", text("sleep 600 >&- 2>&- & echo $! > ", folder_, "/helper; echo '#0  main ()'"));
  taker_->take(order(1));
  EXPECT_EQ(only().end, StacksEnd::kTaken);
  pid_t helper = 0;
  std::ifstream(folder_ + "/helper") >> helper;
  ASSERT_GT(helper, 0);
  EXPECT_TRUE(until([&] {
    const auto left = read_process(helper);
    return !left || left->dead();
  }));
}

TEST_F(StackTakers, LeaveAStoppedProcessStopped) {
  const pid_t pid = process();
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  ASSERT_TRUE(until([&] { return state_of(pid) == 'T'; }));
  tool("gdb", "exec sleep 600");
  taker_->take(order(1, Duration::milliseconds(100)));
  EXPECT_EQ(only().end, StacksEnd::kTimedOut);
  EXPECT_EQ(only().state, "T");
  tool("gdb", "echo '#0  main ()'");
  taker_->take(order(2));  // begins once nothing of the first is left
  EXPECT_EQ(only(1).end, StacksEnd::kTaken);
  EXPECT_EQ(state_of(pid), 'T');
}

TEST_F(StackTakers, KeepSoMuchOfWhatIsWrittenAndReadItAll) {
  process();
  tool("gdb", "echo '#0  main ()'; head -c 3000000 /dev/zero | tr '\\0' x; echo done >&2");
  taker_->take(order(1));
  EXPECT_EQ(only().end, StacksEnd::kTaken);
  EXPECT_TRUE(only().cut);
  EXPECT_EQ(only().output.size(), limits::kStacksBytes);
}

TEST_F(StackTakers, LookAtWhatARankStartedToo) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    (void)::setsid();
    (void)::execl("/bin/sh", "sh", "-c", "sleep 600 & sleep 600 & wait", nullptr);
    ::_exit(127);
  }
  children_.push_back(pid);
  leader_ = pid;
  ASSERT_TRUE(until([&] {
    const auto all = with_descendants(list_processes(), [pid](const ProcessEntry& entry) { return entry.pid == pid; });
    for (const ProcessEntry& entry : all) {
      const auto exe = std::filesystem::read_symlink(text("/proc/", entry.pid, "/exe")).filename();
      if (entry.pid != pid && exe != "sleep") return false;
      if (entry.pid != pid) children_.push_back(entry.pid);
    }
    return all.size() == 3;
  }));
  tool("gdb", "echo '#0  main ()'");
  taker_->take(order(1));
  ASSERT_EQ(answer().processes.size(), 3U);
  EXPECT_EQ(answer().processes[0].pid, pid) << "the rank's own first";
  EXPECT_EQ(answer().processes[1].name, "sleep");
}

TEST_F(StackTakers, LetTheSameRankWaitForItsTurnAndOthersNot) {
  process();
  tool("gdb",
       text("echo > ", folder_, "/began; while [ ! -e ", folder_, "/go ]; do sleep 0.02; done; echo '#0  main ()'"));
  taker_->take(order(1));
  taker_->take(order(2));
  ASSERT_TRUE(until([&] { return std::filesystem::exists(folder_ + "/began"); }));
  EXPECT_EQ(told_.size(), 0U);
  tool("eu-stack", "echo '#0  0x01 main'");  // at once
  taker_->take(order(3, kPatience, 1));
  (void)answer(0);
  EXPECT_EQ(told_[0].stacks.number, 3U);
  std::ofstream(folder_ + "/go") << "";
  (void)answer(2);
  EXPECT_EQ(told_[1].stacks.number, 1U);
  EXPECT_EQ(told_[2].stacks.number, 2U);
}

TEST_F(StackTakers, AnswerWhoseTurnDoesNotComeInTime) {
  process();
  tool("gdb", "exec sleep 600");
  taker_->take(order(1));
  TakeStacks second = order(2);
  second.patience = Duration::milliseconds(50);
  taker_->take(second);
  EXPECT_EQ(answer().end, StacksEnd::kBusy);
  EXPECT_EQ(answer().number, 2U);
}

TEST_F(StackTakers, LetGoOfWhatIsAboutToBeKilled) {
  process();
  tool("gdb", text("echo > ", folder_, "/began; exec sleep 600"));
  taker_->take(order(1));
  ASSERT_TRUE(until([&] { return std::filesystem::exists(folder_ + "/began"); }));
  taker_->abandon({{MeshId(0), Rank(0)}, {}});
  EXPECT_EQ(only().end, StacksEnd::kTimedOut);
  EXPECT_EQ(only().detail, "it was about to be killed");
}

TEST_F(StackTakers, SayThatThereIsNothingToLookAt) {
  leader_ = StacksEnd::kNotExecuted;
  taker_->take(order(1));
  EXPECT_EQ(answer().end, StacksEnd::kNotExecuted);
  // It ends while it is looked at.
  const pid_t pid = process();
  tool("gdb", text("kill -KILL ", pid, "; until grep -q ') Z' /proc/", pid, "/stat; do :; done; exit 1"));
  taker_->take(order(2));
  EXPECT_EQ(only(1).end, StacksEnd::kEnded);
}

}  // namespace
}  // namespace monarch
