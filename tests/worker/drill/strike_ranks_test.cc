// A rank that goes on: it is slow, its output is flooded, its connections are reset, its packets are dropped.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "tests/worker/drill/strike_fixture.h"
#include "transport/process/cpu_affinity.h"
#include "transport/process/read_small.h"
#include "transport/process/run_program.h"
#include "worker/drill/effect.h"

namespace monarch {
namespace {

using Cpus = std::vector<std::uint32_t>;

class StruckSlow : public Struck {
 protected:
  // A thread of it has its own processor, and it has a child.
  void begin_busy() {
    SpawnOptions options = program({"/usr/bin/python3", "-c",
                                    "import os, sys, threading, time\n"
                                    "def idle():\n"
                                    "    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
                                    "    time.sleep(100)\n"
                                    "if os.fork() == 0: time.sleep(100)\n"
                                    "threading.Thread(target=idle, daemon=True).start()\n"
                                    "end = time.monotonic() + 100\n"
                                    "while not os.path.exists(sys.argv[1]) and time.monotonic() < end: pass\n"
                                    "threading.Thread(target=time.sleep, args=[100], daemon=True).start()\n"
                                    "while time.monotonic() < end: pass\n",
                                    path("more")});
    begin_with(options);
    const auto is_ready = [&] {
      const auto all = masks();
      return all.size() == 3 &&
             std::any_of(all.begin(), all.end(), [](const auto& one) { return one.second.size() == 1; });
    };
    EXPECT_TRUE(until(is_ready));
  }
  std::map<pid_t, Cpus> masks() const {
    std::map<pid_t, Cpus> all;
    std::vector<pid_t> processes = children_of(victim_->pid());
    processes.push_back(victim_->pid());
    for (const pid_t process : processes) {
      for (const std::string& name : names_in(text("/proc/", process, "/task"))) {
        const pid_t thread = std::stoi(name);
        all[thread] = usable_cpus(thread);
      }
    }
    return all;
  }
  bool all_on_one() const {
    const auto all = masks();
    return std::all_of(all.begin(), all.end(), [&](const auto& one) { return one.second == all.begin()->second; }) &&
           all.begin()->second.size() == 1;
  }
};

TEST_F(StruckSlow, SharesOneProcessorAndHasItsOwnAgain) {
  begin_busy();
  const auto before = masks();
  const StrikeSeen seen = strike({.what = StrikeWhat::kSlow});
  EXPECT_EQ(seen.error, "");
  EXPECT_EQ(seen.struck.size(), 2U) << "it, and its child";
  EXPECT_TRUE(all_on_one());
  EXPECT_EQ(undo().error, "");
  EXPECT_EQ(masks(), before);
  EXPECT_TRUE(children_of(child_->pid()).empty()) << "the one that spins";

  EXPECT_EQ(strike({.what = StrikeWhat::kSlow}).error, "");
  EXPECT_TRUE(all_on_one());
  kill_check();
  EXPECT_TRUE(until([&] { return masks() == before; }));
  end_victim();
}

TEST_F(StruckSlow, IsNotWhereItWantsNoProcessor) {
  begin();
  const auto before = masks();
  const std::string error = strike({.what = StrikeWhat::kSlow}, Duration::milliseconds(500)).error;
  EXPECT_EQ(error.find("it is not slow: it had 0 % of processor "), 0U) << error;
  EXPECT_EQ(masks(), before);
  end_victim();
}

TEST_F(StruckSlow, HasItsProcessorsAlsoInThreadsThatBeganMeanwhile) {
  begin_busy();
  const auto before = masks();
  EXPECT_EQ(strike({.what = StrikeWhat::kSlow}).error, "");
  write("more", "", 0644);
  EXPECT_TRUE(until([&] { return masks().size() == before.size() + 1; }));
  EXPECT_TRUE(all_on_one());
  EXPECT_EQ(undo().error, "");
  for (const auto& [thread, cpus] : masks()) {
    const auto known = before.find(thread);
    EXPECT_EQ(cpus, known == before.end() ? before.at(victim_->pid()) : known->second);
  }
  end_victim();
}

class StruckFlood : public Struck {
 protected:
  void begin_piped() {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    output_ = UniqueFd(ends[0]);
    // As the pipes of a rank are its user's.
    ASSERT_TRUE(::geteuid() != 0 || ::fchown(ends[1], kOrdinaryUser, kOrdinaryUser) == 0);
    SpawnOptions options = program({"/bin/sleep", "100"});
    options.descriptors = {{ends[1], 1}, {2, 2}};
    begin_with(options);
    (void)::close(ends[1]);
  }
  // Reads its output until there is no writer.
  void begin_reading() {
    SpawnOptions options = program({"/bin/sh", "-c", "exec cat >\"$1\"", "sh", path("heard")});
    options.descriptors = {{output_.get(), 0}, {2, 2}};
    reader_ = start(options);
    output_.reset();
  }

  UniqueFd output_;
  Child* reader_ = nullptr;
};

TEST_F(StruckFlood, HasLinesInItsOutputThatItDidNotWrite) {
  begin_piped();
  begin_reading();
  const StrikeSeen seen = strike({.what = StrikeWhat::kFlood, .size = 2U << 20U});
  EXPECT_EQ(seen.error, "");
  EXPECT_EQ(seen.struck, std::vector<std::int32_t>{victim_->pid()});
  EXPECT_EQ(undo().error, "");
  EXPECT_TRUE(children_of(child_->pid()).empty());
  end_victim();
  EXPECT_EQ(end_of(reader_).value, 0) << "nobody else writes there";
  EXPECT_GE(std::filesystem::file_size(path("heard")), (2U << 20U) / 5);
  std::ifstream heard(path("heard"));
  for (std::string line; std::getline(heard, line);) ASSERT_EQ(line.find("monarch drill: "), 0U) << line;
}

TEST_F(StruckFlood, EndsWithItsRankAndWithItsCheck) {
  begin_piped();
  begin_reading();
  EXPECT_EQ(strike({.what = StrikeWhat::kFlood}).error, "");
  end_victim();
  EXPECT_EQ(end_of(reader_).value, 0) << "a rank's output ends with the rank";
  EXPECT_EQ(undo().error, "");

  begin_piped();
  begin_reading();
  EXPECT_EQ(strike({.what = StrikeWhat::kFlood}).error, "");
  kill_check();
  end_victim();
  EXPECT_EQ(end_of(reader_).value, 0);
}

TEST_F(StruckFlood, IsNoneWhereNobodyReadsOrThereIsNoPipe) {
  begin_piped();
  const std::string error = strike({.what = StrikeWhat::kFlood}, Duration::milliseconds(300)).error;
  EXPECT_NE(error.find(" of 209715 bytes within 300ms"), std::string::npos) << error;
  EXPECT_TRUE(children_of(child_->pid()).empty());
  end_victim();
  begin();
  EXPECT_EQ(strike({.what = StrikeWhat::kFlood}).error,
            text("the standard output of process ", victim_->pid(), " is no pipe"));
  end_victim();
}

// A process that has a connection to the test, and a socket that listens.
class StruckReset : public Struck {
 protected:
  void SetUp() override {
    Struck::SetUp();
    door_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ours_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    where_.sin_family = AF_INET;
    where_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::bind(door_.get(), address(), sizeof where_), 0);
    ASSERT_EQ(::listen(door_.get(), 4), 0);
    socklen_t size = sizeof where_;
    ASSERT_EQ(::getsockname(door_.get(), address(), &size), 0);
    ASSERT_EQ(::connect(ours_.get(), address(), sizeof where_), 0);
    theirs_ = UniqueFd(::accept4(door_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(theirs_.valid());
  }
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&where_); }
  SpawnOptions with_sockets(SpawnOptions options) {
    options.descriptors = {{theirs_.get(), 5}, {door_.get(), 6}, {2, 2}};
    return options;
  }

  sockaddr_in where_{};
  UniqueFd door_;
  UniqueFd ours_;
  UniqueFd theirs_;
};

TEST_F(StruckReset, LosesItsConnectionsAndGoesOnListening) {
  begin_with(with_sockets(program({"/bin/sleep", "100"})));
  theirs_.reset();
  const StrikeSeen seen = strike({.what = StrikeWhat::kReset});
  EXPECT_EQ(seen.error, "");
  EXPECT_EQ(seen.struck, std::vector<std::int32_t>{victim_->pid()});
  char byte = 0;
  EXPECT_EQ(::recv(ours_.get(), &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, ECONNRESET);
  const UniqueFd again(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(again.get(), address(), sizeof where_), 0);

  EXPECT_EQ(strike({.what = StrikeWhat::kReset}).error, "it has no TCP connection");
  EXPECT_EQ(undo().error, "");
  end_victim();
}

TEST_F(StruckReset, SaysWhoRefusesIt) {
  // The kernel lets nobody trace a process whose program may not be read.
  std::filesystem::copy_file("/bin/sleep", path("hidden"));
  std::filesystem::permissions(path("hidden"), static_cast<std::filesystem::perms>(0711));
  begin_with(with_sockets(program({"/bin/sh", "-c", "\"$1\" 100 & exec 5>&-; wait", "sh", path("hidden")})));
  theirs_.reset();
  EXPECT_TRUE(until([&] { return children_of(victim_->pid()).size() == 1; }));
  const std::string error = strike({.what = StrikeWhat::kReset}).error;
  EXPECT_EQ(error.find("refused by "), 0U) << error;
  char byte = 0;
  EXPECT_EQ(::recv(ours_.get(), &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN) << "it is connected";
  end_victim();
}

// As root, who may use nft here.
class StruckCut : public StruckReset {
 protected:
  void SetUp() override {
    StruckReset::SetUp();
    prepare_ = nullptr;
    if (!run_program({"/usr/sbin/nft", "list", "tables"}).ok()) GTEST_SKIP() << "nft may not be used here";
    // Something is said there all the time.
    begin_with(with_sockets(program({"/bin/sh", "-c", "while sleep 0.02; do echo >&5; done"})));
  }
  StrikeOrder cut(std::uint32_t percent) {
    return {.what = StrikeWhat::kCut,
            .address = "127.0.0.1",
            .ports = {ntohs(where_.sin_port)},
            .way = StrikeWay::kIn,
            .percent = percent};
  }
  std::string table() const { return text("monarch_drill_", child_->pid()); }
  bool there(const std::string& rule = "drop") const {
    const auto listing = run_program({"/usr/sbin/nft", "list", "table", "inet", table()});
    return listing.ok() && listing->find(rule) != std::string::npos;
  }
};

TEST_F(StruckCut, LosesSomeOfItsPacketsOrAll) {
  EXPECT_EQ(strike(cut(50)).error, "");
  EXPECT_TRUE(there("numgen random mod 100 < 50 drop"));
  EXPECT_EQ(undo().error, "");
  EXPECT_FALSE(there());

  EXPECT_EQ(strike(cut(100)).error, "");
  EXPECT_TRUE(there());
  kill_check();
  EXPECT_TRUE(until([&] { return !there(); }));
  end_victim();
}

TEST_F(StruckCut, IsNoneWhereNothingComesBy) {
  StrikeOrder order = cut(100);
  order.ports = {1};
  EXPECT_EQ(strike(order, Duration::milliseconds(200)).error, "no packet that it is about came by within 200ms");
  EXPECT_FALSE(there());
  end_victim();
}

}  // namespace
}  // namespace monarch
