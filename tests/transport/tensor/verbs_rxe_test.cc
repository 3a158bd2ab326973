// What befalls owners, readers and the wire while rows are READ by real verbs: in the guest of tests/rxe, which has a
// device of soft-RoCE at each end of a veth pair, v0 and v1. Elsewhere there is no test of these.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/transport/tensor/tensor_gang.h"
#include "tests/transport/tensor/test_devices.h"
#include "transport/tensor/core/card.h"

namespace monarch::tensor {
namespace {

const Matrix kBig{1'024, 2'048};  // 8 MiB: half a second, as the wire is made
const LinkWays kVerbsOrTcp{.machine = {}, .shm = false, .verbs = true, .tcp = true};
constexpr int kASecond = 1'000;  // ms

// A rank that publishes, in a process of its own.
class OwnerProcess {
 public:
  explicit OwnerProcess(const Matrix& matrix) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      (void)::close(ends[0]);
      serve(UniqueFd(ends[1]), matrix);
    }
    (void)::close(ends[1]);
    words_ = UniqueFd(ends[0]);
    card_ = parse_card(hear()).value();
  }
  OwnerProcess(const OwnerProcess&) = delete;
  OwnerProcess& operator=(const OwnerProcess&) = delete;
  ~OwnerProcess() {
    (void)::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  finder_word::Found found() const { return {.gang = 0, .rank = 0, .generation = 1, .card = card_}; }
  void publish(std::uint64_t version) {
    EXPECT_EQ(::send(words_.get(), &version, sizeof version, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof version));
    EXPECT_EQ(hear(), "published");
  }

 private:
  [[noreturn]] static void serve(const UniqueFd& words, const Matrix& matrix) {
    test_verbs = real_device(true);
    TensorGang gang(1, 1);
    const auto say = [&](const std::string& text) {
      if (::send(words.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) ::_exit(1);
    };
    say(card_text(gang.card()));
    for (std::uint64_t version = 0; ::recv(words.get(), &version, sizeof version, 0) == sizeof version;) {
      say(gang.publish(0, matrix, version).ok() ? "published" : "refused");
    }
    ::_exit(0);
  }
  std::string hear() {
    std::array<char, 2'048> text{};
    const ssize_t got = ::recv(words_.get(), text.data(), text.size(), 0);
    return got < 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(got));
  }

  pid_t pid_ = -1;
  UniqueFd words_;
  Card card_;
};

class RxeTest : public ::testing::TestWithParam<int> {
 protected:
  // A wire that is slow leaves processors to those who make trouble meanwhile.
  void SetUp() override {
    make_wires("rate 150mbit limit 100000");
    test_reader_verbs = real_device(false);
  }
  void TearDown() override { test_verbs = test_reader_verbs = {}; }

  // While a run has begun to fill its memory and has not filled it.
  static PullOutcome run_and(ColumnReader& reader, const std::function<void()>& trouble,
                             Duration timeout = Duration::seconds(20)) {
    std::atomic<bool> over{false};
    std::thread other([&] {
      const volatile std::int32_t& first = reader.memory.front();
      while (first == -1 && !over) std::this_thread::yield();
      trouble();
    });
    PullOutcome outcome = reader.run({}, timeout);
    over = true;
    other.join();
    return outcome;
  }
  // Nothing is written into the memory in the second that follows.
  static void expect_still(const ColumnReader& reader) {
    const std::vector<std::int32_t> before = reader.memory;
    (void)::poll(nullptr, 0, kASecond);
    EXPECT_TRUE(reader.memory == before) << "it was written into after the return";
  }
  static void make_wires(const std::string& how) {
    for (const char* const wire : {"v0", "v1"}) {
      command(text("/usr/sbin/tc qdisc replace dev ", wire, " root netem ", how));
    }
  }
  // Words apart by a blank each.
  static void command(const std::string& line) {
    std::vector<std::string> words;
    for (std::istringstream rest(line); rest >> words.emplace_back();) continue;
    words.pop_back();
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      (void)::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << line;
  }
  static void cut_wire() { command("/usr/bin/ip link set v1 down"); }
  // WARNING: the kernel takes the routes of an interface away with it (ip-route(8)), and brings none back.
  static void mend_wire() {
    command("/usr/bin/ip link set v1 up");
    for (std::string state; state != "up"; std::this_thread::yield()) {
      std::ifstream("/sys/class/net/v1/operstate") >> state;
    }
    command("/usr/bin/ip route replace 10.8.0.1 dev v1 src 10.8.0.2 table 101");
    command("/usr/bin/ip route replace 10.8.0.2 dev v0 src 10.8.0.1 table 100");
  }
};

INSTANTIATE_TEST_SUITE_P(Guest, RxeTest, ::testing::Range(0, has_real_devices() ? 1 : 0));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RxeTest);

TEST_P(RxeTest, AnOwnerIsKilledInAPull) {
  OwnerProcess owner(kBig);
  owner.publish(1);
  ColumnReader reader(kBig, 0, 2'048, kVerbsOrTcp);
  reader.finds(owner.found());
  const PullOutcome outcome = run_and(reader, [&] {
    reader.finds_nobody();
    (void)::kill(owner.pid(), SIGKILL);
  });
  EXPECT_EQ(failure(outcome).how, PullEnd::kPeerGone) << failure(outcome).text;
  expect_still(reader);
}

// His card goes on serving: the version is whole, and nobody waits for him.
TEST_P(RxeTest, AnOwnerIsStoppedInAPull) {
  OwnerProcess owner(kBig);
  owner.publish(1);
  ColumnReader reader(kBig, 0, 2'048, kVerbsOrTcp);
  reader.finds(owner.found());
  const Pulled got = pulled(run_and(reader, [&] { (void)::kill(owner.pid(), SIGSTOP); }));
  EXPECT_EQ(got.by_verbs, 1U) << got.why_not_verbs;
  EXPECT_TRUE(reader.is_whole(1));
}

TEST_P(RxeTest, ARunIsCancelled) {
  OwnerProcess owner(kBig);
  owner.publish(1);
  ColumnReader reader(kBig, 0, 2'048, kVerbsOrTcp);
  reader.finds(owner.found());
  EXPECT_EQ(failure(run_and(reader, [&] { reader.pull->cancel(); })).how, PullEnd::kCancelled);
  expect_still(reader);
  EXPECT_EQ(pulled(reader.run()).by_verbs, 1U);
  EXPECT_TRUE(reader.is_whole(1));
}

TEST_P(RxeTest, TheWireIsDownForAMoment) {
  OwnerProcess owner(kBig);
  owner.publish(1);
  ColumnReader reader(kBig, 0, 2'048, kVerbsOrTcp);
  reader.finds(owner.found());
  const Pulled got = pulled(run_and(reader, [&] {
    cut_wire();
    mend_wire();
  }));
  EXPECT_TRUE(reader.is_whole(1));
  EXPECT_EQ(got.by_verbs + got.by_tcp, 1U);
}

TEST_P(RxeTest, TheWireIsDown) {
  OwnerProcess owner(kBig);
  owner.publish(1);
  ColumnReader reader(kBig, 0, 2'048, kVerbsOrTcp);
  reader.finds(owner.found());
  const Pulled got = pulled(run_and(reader, [] { cut_wire(); }));
  mend_wire();
  EXPECT_EQ(got.by_tcp, 1U);
  EXPECT_EQ(got.why_not_verbs, "a READ failed: transport retry counter exceeded");
  EXPECT_TRUE(reader.is_whole(1));
}

TEST_P(RxeTest, AHundredthOfThePacketsIsLost) {
  const Matrix some{256, 2'048};  // 2 MiB
  OwnerProcess owner(some);
  owner.publish(1);
  make_wires("loss 1%");
  ColumnReader reader(some, 0, 2'048, kVerbsOrTcp);
  reader.finds(owner.found());
  (void)pulled(reader.run({}, Duration::seconds(60)));
  EXPECT_TRUE(reader.is_whole(1));
}

// A device whose queues are taken away from under who has them.
class TakenAway final : public VerbsDevice {
 public:
  explicit TakenAway(SharedVerbsDevice device) : device_(std::move(device)) {}

  const DeviceFacts& facts() const override { return device_->facts(); }
  Result<PortFacts> port() const override { return device_->port(); }
  Result<std::unique_ptr<VerbsMemory>> know(char* start, std::uint64_t bytes, VerbsAccess access) override {
    return device_->know(start, bytes, access);
  }
  Result<std::unique_ptr<VerbsQueue>> make_queue(std::size_t reads) override {
    MONARCH_ASSIGN(auto made, device_->make_queue(reads));
    const std::lock_guard lock(mutex_);
    return std::unique_ptr<VerbsQueue>(std::make_unique<Queue>(*this, std::move(made)));
  }
  void take_all() {
    const std::lock_guard lock(mutex_);
    for (Queue* const queue : queues_) queue->real_.reset();
  }

 private:
  struct Queue final : VerbsQueue {
    Queue(TakenAway& of, std::unique_ptr<VerbsQueue> real) : of_(of), real_(std::move(real)) {
      of_.queues_.insert(this);
    }
    ~Queue() override {
      const std::lock_guard lock(of_.mutex_);
      of_.queues_.erase(this);
    }
    std::uint32_t number() const override { return real_->number(); }
    Status connect(const QueuePath& path) override { return real_->connect(path); }
    Status post(const VerbsRead& read) override { return real_->post(read); }
    Result<std::vector<VerbsCompletion>> take(std::size_t most) override { return real_->take(most); }
    Status arm() override { return real_->arm(); }
    bool was_woken() override { return real_->was_woken(); }
    int descriptor() const override { return real_->descriptor(); }
    void set_error() override { real_->set_error(); }

    TakenAway& of_;
    std::unique_ptr<VerbsQueue> real_;
  };

  const SharedVerbsDevice device_;
  std::mutex mutex_;
  std::set<Queue*> queues_;
};

TEST_P(RxeTest, AnOwnersQueueIsDestroyedInAPull) {
  const auto device = std::make_shared<TakenAway>(real_device(true).device);
  test_verbs = {.device = device, .why_not = {}, .short_row = 1};
  TensorGang gang(1, 1);
  gang.publish(kBig, 1);
  ColumnReader reader(kBig, 0, 2'048, kVerbsOrTcp);
  reader.finds(gang);
  const Pulled got = pulled(run_and(reader, [&] { device->take_all(); }));
  EXPECT_TRUE(reader.is_whole(1));
  EXPECT_EQ(got.by_tcp, 1U);
  EXPECT_NE(got.why_not_verbs.find("a READ failed: "), std::string::npos) << got.why_not_verbs;
}

TEST_P(RxeTest, NoMoreMemoryCanBeLocked) {
  const pid_t child = ::fork();
  if (child == 0) {
    const VerbsEnd end = real_device(true);
    const rlimit limit{65'536, 65'536};
    std::vector<char> memory(1U << 20U);
    if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || ::setresuid(65'534, 65'534, 65'534) != 0) ::_exit(1);
    const auto known = end.device->know(memory.data(), memory.size(), VerbsAccess::kFilledHere);
    const std::string wanted = "1MiB of memory cannot be locked for rxe1 (64KiB at most: ulimit -l)";
    ::_exit(known.ok() ? 2 : known.error().message == wanted ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace monarch::tensor
